"""A process that others start instead of a Python script: it has the script forked by ``preloaded.py``.

``python -I -S forked_server.py SOCKET SCRIPT [ARGUMENT ...]``, as ``Preloaded.command`` writes it. It imports
almost nothing. The script gets its streams, environment and working directory. It ends after the script, and
ends the script if it is terminated itself. In place of the script may be ``-u -c CODE``, with which
pytest-xdist starts its workers.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from typing import Any

PATIENCE = 1.0


def main(path: str, arguments: list[str]) -> None:
    """Have a script forked, and wait for its end."""
    is_code = arguments[:2] == ["-u", "-c"]
    code, *rest = arguments[2:] if is_code else arguments
    program = {
        "warnings": [],
        "kind": "code" if is_code else "script",
        "code": code,
        "arguments": rest,
        "cwd": os.getcwd(),  # noqa: PTH109 - pathlib takes as long to import as all else
        "env": dict(os.environ),
        "interruptible": True,
        "unprivileged": False,
        "thorough": False,
    }
    text = json.dumps(program).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        socket.send_fds(connection, [len(text).to_bytes(8, "big")], [0, 1, 2])
        connection.sendall(text)
        for number in (0, 1):  # only the forked process shall hold them open
            os.close(number)
        pid = int(connection.recv(20))

        def terminate(*_: Any) -> None:
            os.kill(pid, signal.SIGTERM)
            connection.settimeout(PATIENCE)
            _wait(connection)
            os.kill(pid, signal.SIGKILL)
            os._exit(1)

        signal.signal(signal.SIGTERM, terminate)
        _wait(connection)


def _wait(connection: socket.socket) -> None:
    """Return when the forked process has ended, which closes its end, or after the time limit."""
    try:
        connection.recv(1)
    except OSError:
        return


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
