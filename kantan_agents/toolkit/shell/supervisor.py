"""The process between the library and one command: starts it, limits it, and ends all of it.

``supervised.py`` passes its source and three modules on the command line, so that changed files have
no effect; it needs only the standard library. A byte on stdin asks it to end the command; the end of stdin,
and so the death of the library's process, to kill it immediately. As the parent of everything that the
command leaves behind, it finds processes that have left their group or session. To stdout it writes two lines
of JSON: the command's process id, and its end.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

from kantan_agents.toolkit.shell.unchanged_paths import UnchangedPaths
from kantan_agents.toolkit.shell.usage import Usage, descendants

GIVE_UP_SECONDS = 10.0
_SET_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36
_IS_LINUX = sys.platform == "linux"


def main() -> None:
    """Run the command of the plan in ``sys.argv[1]`` and end all its processes."""
    plan = json.loads(sys.argv[1])
    _control(_SET_CHILD_SUBREAPER, 1)
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    asked: list[int] = []
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
    kept = UnchangedPaths(plan["kept"])
    child = os.fork()
    if child == 0:
        _become(plan)
    os.close(plan["output"])
    _say({"started": child})
    ends = Reaped(child)
    limit = _watch(ends, plan, kept, (woken, asked))
    ended_by_itself = ends.status is not None
    left = _end_all(ends)
    # Not counted in a sandbox, which may have killed them already.
    left = left if ended_by_itself and not plan["sandboxed"] else 0
    replaced = kept.replaced()
    kept.restore()
    _say({"limit": limit, "left": left, "moved": kept.moved, "replaced": replaced, **_how(ends.status)})


class Reaped:
    """Collects ended processes; ``status`` is the command's, None while it is running."""

    def __init__(self, child: int) -> None:
        self.child = child
        self.status: int | None = None

    def collect(self) -> bool:
        """Collect all ended processes; return whether any is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.child:
                self.status = status


def _become(plan: dict[str, Any]) -> NoReturn:
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for one in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(one, signal.SIG_DFL)  # Python ignores the last two
        _control(_SET_DEATH_SIGNAL, signal.SIGKILL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(plan["output"], 1)
        os.dup2(plan["output"], 2)
        os.close(plan["output"])
        _limit_process(plan["limits"])
        os.execv(plan["argv"][0], plan["argv"])  # noqa: S606 - the shell is in the plan
    except BaseException as error:  # noqa: BLE001 - this copy of the supervisor must end here
        os.write(2, f"{plan['argv'][0]}: {error}\n".encode())
    os._exit(127)


def _limit_process(limits: dict[str, Any]) -> None:
    # RLIMIT_DATA and not RLIMIT_AS: Go, Java and Node reserve far more addresses than they use.
    _set_limit(resource.RLIMIT_DATA, limits["memory_bytes"])
    _set_limit(resource.RLIMIT_CPU, limits["cpu_seconds"], more=5)  # first SIGXCPU, then SIGKILL
    _set_limit(resource.RLIMIT_CORE, 0)
    _set_limit(resource.RLIMIT_FSIZE, limits["disk_bytes"])


def _set_limit(kind: int, soft: int, more: int = 0) -> None:
    hardest = resource.getrlimit(kind)[1]
    hard = soft + more if hardest == resource.RLIM_INFINITY else min(soft + more, hardest)
    with suppress(ValueError, OSError):  # the system has no such limit; the samples count all the same
        resource.setrlimit(kind, (min(soft, hard), hard))


def _watch(
    ends: Reaped, plan: dict[str, Any], kept: UnchangedPaths, wakers: tuple[int, list[int]]
) -> str | None:
    woken, asked = wakers
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(woken, select.POLLIN)
    deadline = float("inf")
    usage = Usage(plan["limits"], plan["temporary"])
    while True:
        ready = dict(poll.poll(usage.pause * 1000))
        if 0 in ready:
            if not os.read(0, 16):
                return None
            deadline = min(deadline, time.monotonic() + plan["grace"])
            _ask_to_end(ends.child, is_sandboxed=plan["sandboxed"])
        if woken in ready:
            with suppress(BlockingIOError):
                os.read(woken, 4096)
        ends.collect()
        if ends.status is not None or asked or time.monotonic() >= deadline or os.getppid() != plan["parent"]:
            return None
        if usage.is_due():
            limit = "kept" if kept.is_broken() else "replaced" if kept.replaced() else usage.exceeded()
            if limit is not None:
                return limit


def _ask_to_end(child: int, *, is_sandboxed: bool) -> None:
    for pid in descendants(os.getpid()) or [child]:
        if not (is_sandboxed and pid == child):  # the sandbox kills its processes as soon as it ends
            with suppress(OSError):
                os.kill(pid, signal.SIGTERM)


def _end_all(ends: Reaped) -> int:
    # Every orphan becomes a child of this process, so without children it is done.
    deadline = time.monotonic() + GIVE_UP_SECONDS
    seen: set[int] = set()
    while ends.collect() and time.monotonic() < deadline:
        found = descendants(os.getpid())
        seen.update(found)
        with suppress(OSError):
            os.killpg(ends.child, signal.SIGKILL)
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
    if not _IS_LINUX:
        with suppress(OSError):
            os.killpg(ends.child, signal.SIGKILL)
    return len(seen - {ends.child})


def _how(status: int | None) -> dict[str, int | None]:
    if status is None:
        return {"code": None, "signal": None}
    if os.WIFSIGNALED(status):
        return {"code": None, "signal": os.WTERMSIG(status)}
    return {"code": os.WEXITSTATUS(status), "signal": None}


def _control(option: int, value: int) -> None:
    if _IS_LINUX:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _say(what: dict[str, Any]) -> None:
    with suppress(OSError):  # the library's process is gone
        os.write(1, json.dumps(what).encode() + b"\n")
