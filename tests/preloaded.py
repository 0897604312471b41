"""A process that imports the SDK once and forks a child for each program that a test starts.

Importing the SDK takes two seconds of processor time. A forked child has it already. The child starts with
one thread and no recorder, becomes the program, and ends as every process does: it waits for its threads and
calls its exit functions. It skips only the interpreter's last step, which takes all modules apart, unless a
program asks for it.

``tests/programs.py`` is the other side: it starts this process and talks to it over the socket whose number
is the first argument. Every message is its length in eight bytes, followed by JSON. The second argument is
the number of a listening socket: ``tests/forked_server.py`` connects to it and sends one message.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import types
import warnings
from pathlib import Path
from typing import Any


class _Leaving:
    """The exit status, if the process may skip taking its modules apart."""

    status: int | None = None


def leave() -> None:
    """End the process, as the last of all exit functions."""
    if _Leaving.status is None:
        return
    sys.stdout.flush()
    sys.stderr.flush()
    save_coverage()
    os._exit(_Leaving.status)


def _coverage() -> Any:
    """Return what counts the lines of this process, or None."""
    module = sys.modules.get("coverage")
    return None if module is None else module.Coverage.current()


def save_coverage() -> None:
    """Write the figures of coverage, whose own exit function would come later."""
    measuring = _coverage()
    if measuring is not None:
        measuring.stop()
        measuring.save()


def save_coverage_of_imports() -> None:
    """Write the lines that the imports have run: children write only their own, which takes a tenth as long.

    This file also names the modules that nothing has imported. A child need not look for them.
    """
    measuring = _coverage()
    if measuring is not None:
        measuring.save()
        measuring._inorout.find_possibly_unexecuted_files = lambda: iter(())


atexit.register(leave)  # before the imports: what they register is called earlier

import anyio._backends._asyncio  # noqa: E402, F401
import dbos  # noqa: E402, F401
import fastapi  # noqa: E402, F401
import kantan_llm.tracing  # noqa: E402, F401
import mcp.server  # noqa: E402
import temporalio.worker  # noqa: E402, F401
import uvicorn  # noqa: E402
import uvicorn.lifespan.on  # noqa: E402
import uvicorn.loops.asyncio  # noqa: E402
import uvicorn.protocols.http.h11_impl  # noqa: E402, F401
from agents.tracing.processors import BackendSpanExporter  # noqa: E402
from openai._models import construct_type  # noqa: E402
from openai.types.responses import Response, ResponseStreamEvent  # noqa: E402
from starlette.applications import Starlette  # noqa: E402, F401

import kantan_agents  # noqa: E402
import kantan_agents.cli.app  # noqa: E402
import kantan_agents.cli.chat.editor  # noqa: E402 - with the editor's library
import kantan_agents.cli.chat.run  # noqa: E402
import kantan_agents.cli.run.run  # noqa: E402
import kantan_agents.models.light_requests  # noqa: E402 - with the resources of openai
import kantan_agents.testing  # noqa: E402
import kantan_agents.traces.recorder  # noqa: E402
import kantan_agents.traces.store  # noqa: E402
from kantan_agents.testing.wire import response_events  # noqa: E402

# The package imports its parts when they are first used: here, for all children.
for _name in kantan_agents.__all__:
    getattr(kantan_agents, _name)

# The servers of tests; the name is that of mcp 2, which also imports its parts when they are first used.
getattr(mcp.server, "MCPServer", None)

# The client makes the validators of answers when the first one arrives, which takes longer than a run. The
# program makes its commands when it is first called.
for _event in response_events(kantan_agents.testing.Reply("Hello."), "gpt-5-mini"):
    construct_type(type_=ResponseStreamEvent, value=_event)
    if "response" in _event:
        construct_type(type_=Response, value=_event["response"])
for _command in kantan_agents.cli.app.make_commands().commands.values():
    del _command  # it is imported and made

# Imports on its own what it needs; a process of another user may not be allowed to read that any more.
BackendSpanExporter().close()  # type: ignore[no-untyped-call]

UNPRIVILEGED = 65534
LENGTH = 8
_FROM_WARNING_OPTION = ("error", None, Warning, None, 0)
_INHERITED = len([entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry])
_INSTALLED = sys.path[1 + _INHERITED :]  # behind this script's folder and PYTHONPATH


def receive(connection: socket.socket) -> tuple[Any, list[int]]:
    """Return the next message and the descriptors that came with it; the message is None at the end."""
    head, descriptors, _, _ = socket.recv_fds(connection, LENGTH, 3)
    if not head:
        return None, []
    head += _exactly(connection, LENGTH - len(head))
    return json.loads(_exactly(connection, int.from_bytes(head, "big"))), descriptors


def _exactly(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        part = connection.recv(count - len(received))
        if not part:
            raise EOFError
        received += part
    return received


def send(connection: socket.socket, message: Any) -> None:
    """Send an answer."""
    text = json.dumps(message).encode()
    connection.sendall(len(text).to_bytes(LENGTH, "big") + text)


def serve(connection: socket.socket, listener: socket.socket) -> dict[str, Any] | None:
    """Answer requests; return the program to become in a forked child, None in this process at the end."""
    statuses: dict[int, int | None] = {}
    unwatched: set[int] = set()
    while True:
        ready, _, _ = select.select([connection, listener], [], [])
        unwatched -= {pid for pid in unwatched if os.waitpid(pid, os.WNOHANG)[0]}
        if connection not in ready:
            asking, _ = listener.accept()
            with asking:
                try:
                    program, descriptors = receive(asking)
                except (EOFError, OSError):
                    program = None
                if program is None:  # it was ended while it asked
                    continue
                pid = _fork(descriptors, connection, listener)
                if pid == 0:
                    os.set_inheritable(asking.detach(), False)  # closed by the end of this child
                    return dict(program)
                unwatched.add(pid)
                try:
                    asking.sendall(str(pid).encode())
                except OSError:  # it was ended since, and cannot end the child
                    os.kill(pid, signal.SIGKILL)
            continue
        request, descriptors = receive(connection)
        if request is None:
            return None
        if "status" in request:
            answer = statuses[request["status"]]
            if answer is None:
                pid, status = os.waitpid(request["status"], os.WNOHANG)
                answer = statuses[request["status"]] = os.waitstatus_to_exitcode(status) if pid else None
        elif "ready" in request:
            answer = True
        else:
            answer = _fork(descriptors, connection, listener)
            if answer == 0:
                return dict(request)
            statuses[answer] = None
        send(connection, answer)


def _fork(descriptors: list[int], *sockets: socket.socket) -> int:
    """Fork; the child has these descriptors as its standard streams, and not the sockets."""
    pid = os.fork()
    if pid == 0:
        for each in sockets:
            each.close()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    return pid


def _open_streams() -> None:
    """Make ``sys.stdin``, ``sys.stdout`` and ``sys.stderr`` anew, as the interpreter does when it starts."""
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "").partition(":")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        before = getattr(sys, name)
        made = open(  # noqa: SIM115 - stays open
            number,
            "w" if number else "r",
            encoding=encoding or before.encoding,
            errors=before.errors if number == 2 else errors or before.errors,
            closefd=False,
        )
        made.reconfigure(line_buffering=number == 2 or made.isatty())
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)


def become(program: dict[str, Any]) -> None:
    """Run the program in this process, as ``python`` does with its ``arguments``."""
    os.environ.clear()
    os.environ.update(program["env"])
    os.chdir(program["cwd"])
    _open_streams()
    if program["interruptible"]:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if program["unprivileged"] and os.getuid() == 0:
        os.setgroups([])
        os.setgid(UNPRIVILEGED)
        os.setuid(UNPRIVILEGED)
    _warn_as(program["warnings"])
    _Leaving.status = None if program["thorough"] else 0
    try:
        _run(program["kind"], program["code"], program["arguments"])
    except KeyboardInterrupt:
        _Leaving.status = None  # ends by a signal, which is the interpreter's to do
        raise
    except SystemExit as end:
        if isinstance(end.code, int) and _Leaving.status is not None:
            _Leaving.status = end.code
        elif end.code is not None:
            _Leaving.status = None
        raise
    except BaseException:
        if _Leaving.status is None:
            raise
        _Leaving.status = 1
        raise


def _warn_as(actions: list[str]) -> None:
    """Replace this process's ``-W error`` with the options of the program."""
    sys.warnoptions[:] = actions
    if _FROM_WARNING_OPTION in warnings.filters:
        warnings.filters.remove(_FROM_WARNING_OPTION)  # type: ignore[attr-defined]
    for action in actions:
        warnings.simplefilter(action)  # type: ignore[arg-type]


def _run(kind: str, code: str, arguments: list[str]) -> None:
    folder = str(Path(code).parent) if kind == "script" else "" if kind == "code" else str(Path.cwd())
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [folder, *filter(None, entries), *_INSTALLED]
    importlib.invalidate_caches()
    if kind == "module":
        sys.argv = [code, *arguments]
        runpy.run_module(code, run_name="__main__", alter_sys=True)
        return
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    if kind == "script":
        sys.argv = [code, *arguments]
        main.__file__ = code
        exec(compile(Path(code).read_text(encoding="utf-8"), code, "exec"), main.__dict__)
    else:
        sys.argv = ["-c", *arguments]
        exec(compile(code, "<string>", "exec"), main.__dict__)


if __name__ == "__main__":
    save_coverage_of_imports()
    # A child need not search all that is imported for garbage, which would also copy its memory.
    gc.collect()
    gc.freeze()
    with (
        socket.socket(fileno=int(sys.argv[1])) as _connection,
        socket.socket(fileno=int(sys.argv[2])) as _listener,
    ):
        wanted = serve(_connection, _listener)
    if wanted is not None:
        become(wanted)
