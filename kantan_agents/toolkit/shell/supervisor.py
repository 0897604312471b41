"""The process between the library and one command: it starts the command, limits it, and ends all of it.

It runs alone, with the standard library only. Its stdin is the line to the library: a byte asks it to end the
command, and the end of the line, which is also the death of the library's process, to kill it at once. It is
the parent of everything that the command leaves behind, so it finds processes that have left their group or
session. To stdout it writes two lines of JSON: the command's process id, and how the command has ended.
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
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

SAMPLE_SECONDS = 0.25
GIVE_UP_SECONDS = 10.0
_SET_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36
_IS_LINUX = sys.platform == "linux"
_KNOWS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


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
    child = os.fork()
    if child == 0:
        _become(plan)
    os.close(plan["output"])
    _say({"started": child})
    ends = Reaped(child)
    limit = _watch(ends, plan, woken, asked)
    ended_by_itself = ends.status is not None
    left = _end_all(ends)
    # The sandbox may have killed what was left in it already, so it is not counted.
    left = left if ended_by_itself and not plan["sandboxed"] else 0
    _say({"limit": limit, "left": left, **_how(ends.status)})


class Reaped:
    """Collects the processes that have ended.

    Args:
        child: The command.

    Attributes:
        child: The command.
        status: The command's status; None while it is running.
    """

    def __init__(self, child: int) -> None:
        self.child = child
        self.status: int | None = None

    def collect(self) -> bool:
        """Take the status of everything that has ended; return whether anything is still there."""
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
    """Become the command, in a session of its own."""
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
    except BaseException as error:  # noqa: BLE001 - this copy of the supervisor must not go on
        os.write(2, f"{plan['argv'][0]}: {error}\n".encode())
    os._exit(127)


def _limit_process(limits: dict[str, Any]) -> None:
    # RLIMIT_DATA and not RLIMIT_AS: Go, Java and Node reserve far more addresses than they ever use.
    _set_limit(resource.RLIMIT_DATA, limits["memory_bytes"])
    _set_limit(resource.RLIMIT_CPU, limits["cpu_seconds"], more=5)  # first SIGXCPU, then SIGKILL
    _set_limit(resource.RLIMIT_CORE, 0)


def _set_limit(kind: int, soft: int, more: int = 0) -> None:
    hardest = resource.getrlimit(kind)[1]
    hard = soft + more if hardest == resource.RLIM_INFINITY else min(soft + more, hardest)
    with suppress(ValueError, OSError):  # the system has no such limit; the samples count all the same
        resource.setrlimit(kind, (min(soft, hard), hard))


def _watch(ends: Reaped, plan: dict[str, Any], woken: int, asked: list[int]) -> str | None:
    """Wait until the command has ended or is to be killed; return the limit that it has exceeded."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(woken, select.POLLIN)
    deadline = float("inf")
    sampled = 0.0
    while True:
        ready = dict(poll.poll(SAMPLE_SECONDS * 1000))
        if 0 in ready:
            if not os.read(0, 16):
                return None
            deadline = min(deadline, time.monotonic() + plan["grace"])
            _ask_to_end(ends.child, is_sandboxed=plan["sandboxed"])
        if woken in ready:
            with suppress(BlockingIOError):
                os.read(woken, 4096)
        ends.collect()
        now = time.monotonic()
        if ends.status is not None or asked or now >= deadline or os.getppid() != plan["parent"]:
            return None
        if now - sampled >= SAMPLE_SECONDS:
            sampled = now
            limit = _exceeded(plan["limits"])
            if limit is not None:
                return limit


def _ask_to_end(child: int, *, is_sandboxed: bool) -> None:
    for pid in _descendants(os.getpid()) or [child]:
        if not (is_sandboxed and pid == child):  # the sandbox kills what is in it as soon as it ends
            with suppress(OSError):
                os.kill(pid, signal.SIGTERM)


def _end_all(ends: Reaped) -> int:
    """Kill everything below this process; return how many processes there were."""
    # Every orphan becomes a child of this process, so without children it is done.
    deadline = time.monotonic() + GIVE_UP_SECONDS
    seen: set[int] = set()
    while ends.collect() and time.monotonic() < deadline:
        found = _descendants(os.getpid())
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


def _descendants(pid: int) -> list[int]:
    """Return the processes below a process; empty where the system has no /proc."""
    children_of = _children if _KNOWS_CHILDREN else _children_of_all()
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children_of(waiting.pop())
        found += below
        waiting += below
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                children += map(int, (task / "children").read_bytes().split())
    return children


def _children_of_all() -> Callable[[int], list[int]]:
    """Look at all processes, where none has a list of its children; return what ``_children`` is there."""
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for place in Path("/proc").iterdir():
            if place.name.isdigit():
                with suppress(OSError, ValueError, IndexError):
                    children.setdefault(int(_fields(place)[1]), []).append(int(place.name))
    return lambda pid: children.pop(pid, [])


def _fields(process: Path) -> list[bytes]:
    """Return the fields of ``/proc/PID/stat`` after the name in parentheses, which may hold anything."""
    return (process / "stat").read_bytes().rpartition(b")")[2].split()


def _exceeded(limits: dict[str, Any]) -> str | None:
    """Return the limit that all processes of the command exceed together."""
    found = _descendants(os.getpid())
    if len(found) > limits["processes"]:
        return "processes"
    memory = 0
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = own.ru_utime + own.ru_stime
    for pid in found:
        with suppress(OSError, ValueError, IndexError):
            _, resident, shared, *_ = map(int, Path(f"/proc/{pid}/statm").read_bytes().split())
            memory += (resident - shared) * _PAGE
            fields = _fields(Path(f"/proc/{pid}"))
            seconds += sum(map(int, fields[11:15])) / _TICKS  # also those of children that it has waited for
    if memory > limits["memory_bytes"]:
        return "memory"
    return "cpu" if seconds > limits["cpu_seconds"] else None


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


if __name__ == "__main__":
    main()
