"""A process that imports everything once and forks one that becomes a script, for each that is asked for.

A test of how a process ends needs many processes, and each would take seconds to import the SDK. What is
forked here has one thread and no recorder yet; it runs the script as its main module and then ends as any
process does: threads are waited for and exit functions called. Only what follows, which is to take all
modules apart again and takes seconds too, is left out, unless a script asks for it.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import traceback
import types
from pathlib import Path
from typing import Any


class _Leaving:
    """What the process is to exit with, if it need not take itself apart."""

    status: int | None = None


def leave() -> None:
    """End the process, as the last of all exit functions."""
    # Coverage, which started still earlier, has its figures to write.
    if _Leaving.status is not None and "coverage" not in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_Leaving.status)


atexit.register(leave)  # before the imports: what they register is called earlier

import kantan_llm.tracing  # noqa: E402, F401
import uvicorn  # noqa: E402, F401
from agents.tracing.processors import BackendSpanExporter  # noqa: E402
from starlette.applications import Starlette  # noqa: E402, F401

import kantan_agents.tracing.recorder  # noqa: E402
import kantan_agents.tracing.store  # noqa: E402, F401

# Imports on its own what it needs; a process of another user may not be allowed to read that any more.
BackendSpanExporter().close()  # type: ignore[no-untyped-call]

UNPRIVILEGED = 65534


def serve() -> dict[str, Any] | None:
    """Answer requests; return what to become in a forked child, None in this process at the end."""
    children: dict[int, int | None] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "status" in request:
            answer = children[request["status"]]
            if answer is None:
                pid, status = os.waitpid(request["status"], os.WNOHANG)
                answer = children[request["status"]] = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                return dict(request)
            children[answer] = None
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    return None


def become(request: dict[str, Any]) -> None:
    """Run the script of ``request`` in this process."""
    for number, (name, flags) in enumerate(
        [
            (os.devnull, os.O_RDONLY),
            (request["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND),
            (request["err"], os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        ]
    ):
        opened = os.open(name, flags, 0o666)
        os.dup2(opened, number)
        os.close(opened)
    script = Path(request["script"])
    os.chdir(script.parent)
    if request["unprivileged"] and os.getuid() == 0:
        os.setgroups([])
        os.setgid(UNPRIVILEGED)
        os.setuid(UNPRIVILEGED)
    sys.argv = [str(script), *request["arguments"]]
    sys.path.insert(0, str(script.parent))
    main = types.ModuleType("__main__")
    main.__file__ = str(script)
    sys.modules["__main__"] = main
    code = compile(script.read_text(), str(script), "exec")
    _Leaving.status = None if request["thorough"] else 0
    try:
        exec(code, main.__dict__)
    except KeyboardInterrupt:
        _Leaving.status = None  # ends by a signal, which is the interpreter's to do
        raise
    except SystemExit as end:
        if _Leaving.status is not None:
            _Leaving.status = int(end.code or 0)
        raise
    except BaseException:
        if _Leaving.status is None or "coverage" in sys.modules:
            raise
        _Leaving.status = 1
        traceback.print_exc()


if __name__ == "__main__":
    wanted = serve()
    if wanted is not None:
        become(wanted)
