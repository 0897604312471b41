"""A running command."""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import signal
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import anyio
import attrs
from anyio import to_thread

from kantan_agents.support.waiting import wait_for_end
from kantan_agents.toolkit.shell.bounded_output import BoundedOutput, LatestOutput
from kantan_agents.toolkit.shell.limits import ShellLimits
from kantan_agents.toolkit.shell.supervised import Launch, Supervised, session_in

_CHUNK = 65_536
_SIGNALLED = 128
_LIMIT_OF = {getattr(signal, "SIGXCPU", -1): "cpu", getattr(signal, "SIGXFSZ", -2): "disk"}
_REST_SECONDS = 1.0
_PATIENCE_SECONDS = 12.0  # more than a supervisor takes to give up


@attrs.frozen
class CommandEnding:
    """How a command ended.

    ``limit`` is what it exceeded; ``"kept"`` if it created something forbidden; ``"replaced"`` and ``"way"``
    if a protected file was or is about to be replaced. ``moved`` has protected paths that it created or
    replaced, each with its new name; "" for a restored link. Others have replaced the paths in ``replaced``
    meanwhile, so that it could write there.
    """

    code: int | None = None
    signal: int | None = None
    limit: str | None = None
    left: int = 0
    moved: tuple[tuple[str, str], ...] = ()
    replaced: tuple[str, ...] = ()
    problem: str | None = None
    is_started: bool = True


class ShellCommand:
    """A command, owned by a separate task: the task that waits for it may be canceled."""

    def __init__(self, launch: Launch, seconds: float, latest: LatestOutput | None = None) -> None:
        self.output = BoundedOutput(launch.limits.output_bytes)
        self.latest = latest
        self.ending: CommandEnding | None = None
        self.started_at = time.monotonic()
        self.ended_at: float | None = None
        self._launch = launch
        self.seconds = seconds
        self._limit: str | None = None
        self._lock = threading.Lock()
        self._is_killed = False
        self._supervisor: Supervised | None = None
        self._said = b""
        self._loop = asyncio.get_running_loop()
        self._asked_to_end = anyio.Event()
        # A separate context: it may outlive the tool call that starts it.
        self._task = contextvars.Context().run(asyncio.create_task, self._own())

    async def ended(self) -> CommandEnding:
        """Wait for the end, even if the waiting task is canceled; that kills the command."""
        try:
            await asyncio.wait({self._task})
        except BaseException:
            self.kill()
            await wait_for_end(self._task)
            raise
        return CommandEnding(problem="its event loop has ended") if self.ending is None else self.ending

    def kill(self) -> None:
        """Kill all processes, from any thread and without waiting."""
        with self._lock:
            self._is_killed = True
            if self._supervisor is not None:
                self._supervisor.hang_up()
        with suppress(RuntimeError):  # the event loop is closed, and its end has killed the command
            self._loop.call_soon_threadsafe(self._asked_to_end.set)

    async def killed(self) -> None:
        """Kill the command and wait, unless another event loop owns it."""
        self.kill()
        if self._loop is asyncio.get_running_loop():
            await wait_for_end(self._task)

    @property
    def limits(self) -> ShellLimits:
        """Its limits."""
        return self._launch.limits

    @property
    def is_over(self) -> bool:
        """Whether it, or the event loop that owned it, has ended."""
        return self.ending is not None or self._task.done() or self._loop.is_closed()

    async def _own(self) -> None:
        supervisor = Supervised(self._launch)
        try:
            await to_thread.run_sync(self._open, supervisor)
        except OSError as error:
            self.ending = CommandEnding(problem=str(error), is_started=False)
            self.ended_at = time.monotonic()
            return
        except BaseException:
            self.kill()
            raise
        insisting = anyio.CancelScope()
        beside = [self._read_output(supervisor), self._insist(supervisor, insisting)]
        try:
            async with anyio.create_task_group() as group:
                for coroutine in beside:
                    group.start_soon(_itself, coroutine)
                await self._wait(supervisor)
                insisting.cancel()
                ending = self._read_ending("way" if supervisor.makes_way else self._limit)
                if ending.problem is not None:
                    await to_thread.run_sync(supervisor.end_leftovers)
                # All processes with the pipe are gone, unless it was sent to one by a socket.
                group.cancel_scope.deadline = anyio.current_time() + _REST_SECONDS
            self.ending = ending
        finally:
            for coroutine in beside:
                coroutine.close()  # never awaited if the loop ends before its task's first step
            self.ended_at = time.monotonic()
            supervisor.hang_up()
            if self.ending is None:
                self.ending = CommandEnding(problem="its event loop has ended")
            try:
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(supervisor.close)
            except asyncio.CancelledError:  # the loop ends, and the thread may not have started
                threading.Thread(target=supervisor.close).start()
                raise

    def _open(self, supervisor: Supervised) -> None:
        supervisor.open()
        with self._lock:
            self._supervisor = supervisor
            if self._is_killed:
                supervisor.hang_up()

    async def _wait(self, supervisor: Supervised) -> None:
        with anyio.move_on_after(self.seconds) as limit:
            await self._read_status(supervisor)
        if limit.cancelled_caught:
            self._limit = self._limit or "time"
            supervisor.stop()
            self._asked_to_end.set()
            await self._read_status(supervisor)

    async def _insist(self, supervisor: Supervised, scope: anyio.CancelScope) -> None:
        with scope:
            await self._asked_to_end.wait()
            await anyio.sleep(self._launch.limits.grace_seconds + _PATIENCE_SECONDS)
            await to_thread.run_sync(supervisor.force)

    async def _read_status(self, supervisor: Supervised) -> None:
        while data := await _read(supervisor.status):
            self._said = (self._said + data)[-_CHUNK:]
            if supervisor.session is None:
                supervisor.session = session_in(self._said)

    async def _read_output(self, supervisor: Supervised) -> None:
        while data := await _read(supervisor.output):
            self.output.add(data)
            if self.latest is not None:
                self.latest.add(data)
            if self.output.total > self._launch.limits.printed_bytes and self._limit is None:
                self._limit = "output"
                supervisor.hang_up()
                self._asked_to_end.set()

    def _read_ending(self, limit: str | None) -> CommandEnding:
        said: dict[str, Any] = {}
        others: list[str] = []
        for line in self._said.decode("utf-8", "replace").splitlines():
            try:
                said |= json.loads(line)
            except (ValueError, TypeError):  # noqa: PERF203 - two lines
                others.append(line)
        if "code" in said:
            limit = limit or said["limit"]
            if limit is None:
                # A sandbox only shows the code of a signal.
                code = said["code"] - _SIGNALLED if self._launch.is_sandboxed and said["code"] else None
                limit = _LIMIT_OF.get(said["signal"] or code)
            moved = tuple((old, new) for old, new in said["moved"])
            return CommandEnding(
                said["code"], said["signal"], limit, said["left"], moved, tuple(said["replaced"])
            )
        # A command without a sandbox can kill its supervisor.
        problem = " ".join(others)[-500:] or "the process that watches it was killed"
        return CommandEnding(limit=limit, problem=problem)


def _itself(coroutine: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
    return coroutine


async def _read(file: int) -> bytes:
    while True:
        await anyio.wait_readable(file)
        with suppress(BlockingIOError):
            return os.read(file, _CHUNK)
