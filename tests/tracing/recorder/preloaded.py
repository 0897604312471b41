"""A process that imports everything once, and forks a process for each script that it should run.

The tests of how a process ends need many processes, and each would take seconds to import the SDK. A forked
process has one thread and no recorder yet. It runs the script as its main module and then ends like any
process: it waits for threads and calls exit functions. The teardown of all modules, which takes seconds too,
is skipped unless a script requests it.
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


class _Exit:
    """The exit status of the process if the teardown is skipped."""

    status: int | None = None


def exit_early() -> None:
    """Exit without the teardown; the last exit function to run."""
    # Coverage registered its exit function even earlier, and must still write its data.
    if _Exit.status is not None and "coverage" not in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_Exit.status)


atexit.register(exit_early)  # before the imports, whose exit functions are then called earlier

import kantan_llm.tracing  # noqa: E402, F401
import uvicorn  # noqa: E402, F401
from agents.tracing.processors import BackendSpanExporter  # noqa: E402
from starlette.applications import Starlette  # noqa: E402, F401

import kantan_agents.tracing.recorder  # noqa: E402
import kantan_agents.tracing.store  # noqa: E402, F401

# Imports more modules on first use; a process of another user might not be able to read them later.
BackendSpanExporter().close()  # type: ignore[no-untyped-call]

UNPRIVILEGED = 65534


def serve() -> dict[str, Any] | None:
    """Answer requests; return the request in a forked child, and None in this process at the end."""
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


def run_script(request: dict[str, Any]) -> None:
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
    _Exit.status = None if request["thorough"] else 0
    try:
        exec(code, main.__dict__)
    except KeyboardInterrupt:
        _Exit.status = None  # the interpreter ends the process by a signal
        raise
    except SystemExit as end:
        if _Exit.status is not None:
            _Exit.status = int(end.code or 0)
        raise
    except BaseException:
        if _Exit.status is None or "coverage" in sys.modules:
            raise
        _Exit.status = 1
        traceback.print_exc()


if __name__ == "__main__":
    request = serve()
    if request is not None:
        run_script(request)
