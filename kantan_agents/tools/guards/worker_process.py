"""Runs a short Python program in another process."""

from __future__ import annotations

import atexit
import os
import subprocess
from contextlib import suppress
from typing import Final

import anyio
import anyio.lowlevel
from anyio.abc import Process

from kantan_agents.tool_rules.worker import LIFETIME_SECONDS, worker_command

_AT_ONCE: Final = 2
_limiters: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("kantan_agents_checks")
_running: set[Process] = set()


async def run_worker(program: str, task: bytes) -> bytes:
    """Return the program's output for the input ``task``.

    The process is killed if this task is canceled, after a timeout, and when this interpreter exits. In
    ``program``, ``parent`` is the id of this process.
    """
    command = worker_command(program)
    async with _limiter():
        with anyio.fail_after(LIFETIME_SECONDS):
            process = await anyio.open_process(command, stderr=subprocess.DEVNULL)
            _running.add(process)
            try:
                output = await _communicate(process, task)
                code = await process.wait()
            finally:
                await _end(process)
    if code != 0:
        raise subprocess.CalledProcessError(code, command[0])
    return output


async def _communicate(process: Process, task: bytes) -> bytes:
    stdin, stdout = process.stdin, process.stdout
    if stdin is None or stdout is None:
        raise OSError("the process has no pipes")
    # Its exit code gives the reason. Before 4.12, anyio raises the pipe's error.
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await stdin.send(task)
        await stdin.aclose()
    pieces = [piece async for piece in stdout]
    return b"".join(pieces)


async def _end(process: Process) -> None:
    """Kill the process: asyncio cancels only once, so waiting for it first would wait for its answer."""
    try:
        _kill(process)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    finally:
        _running.discard(process)


def _kill(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()


def _limiter() -> anyio.CapacityLimiter:
    try:
        return _limiters.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(_AT_ONCE)
        _limiters.set(limiter)
        return limiter


def _kill_all() -> None:
    for process in tuple(_running):
        _kill(process)


atexit.register(_kill_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)  # they belong to the parent
