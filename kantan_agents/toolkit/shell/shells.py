"""The background shells of a run."""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import attrs
from anyio import to_thread

from kantan_agents.core.pipeline import Run
from kantan_agents.errors import ShellUnavailableError, TooManyShellsError, UnknownShellError
from kantan_agents.toolkit.shell.command import CommandEnding, ShellCommand

_MOST_PARKED = 64
_MOST_ENDED = 32


@attrs.define(eq=False)
class BackgroundShell:
    """A background command.

    The model knows its end if ``is_known_to_end``; a person has ended it if ``is_stopped``.
    """

    id: str
    line: str
    command: ShellCommand
    is_known_to_end: bool = False
    is_stopped: bool = False


class Shells:
    """The commands of one run, and its directory for temporary files.

    With ``is_shared``, several runs use it, which must not find each other's commands.
    """

    def __init__(
        self, most: int, root: str, *, is_shared: bool = False, numbers: Iterator[int] | None = None
    ) -> None:
        self._most = most
        self._root = root
        self._is_shared = is_shared
        self._known: dict[str, BackgroundShell] = {}
        self._awaited: set[ShellCommand] = set()
        self._numbers = itertools.count(1) if numbers is None else numbers
        self._lock = threading.Lock()
        self._temporary: str | None = None

    async def temporary(self) -> str:
        """Return a directory that is removed with the shells."""
        return await to_thread.run_sync(self._temporary_directory)

    def begin(self, line: str, start: Callable[[], ShellCommand]) -> BackgroundShell:
        """Start a background command; raise E170."""
        running = self.running
        if len(running) >= self._most:
            raise TooManyShellsError(limit=self._most, running=[] if self._is_shared else running)
        ended = [shell.id for shell in self._known.values() if shell.command.is_over]
        for one in ended[: max(len(ended) - _MOST_ENDED, 0)]:
            del self._known[one]
        number = secrets.token_hex(8) if self._is_shared else str(next(self._numbers))
        shell = BackgroundShell(f"bash_{number}", line, start())
        self._known[shell.id] = shell
        return shell

    async def run(self, command: ShellCommand) -> CommandEnding:
        """Wait for a command; kill it on cancellation and at the end of the run."""
        self._awaited.add(command)
        try:
            return await command.ended()
        finally:
            self._awaited.discard(command)

    def get(self, shell_id: str) -> BackgroundShell:
        """Return a shell; raise E169."""
        shell = self._known.get(shell_id)
        if shell is None:
            available = [] if self._is_shared else list(self._known)
            raise UnknownShellError(shell=shell_id, available=available)
        return shell

    def listed(self) -> list[BackgroundShell]:
        """Return the known shells in starting order."""
        return list(self._known.values())

    @property
    def running(self) -> list[str]:
        """Ids of running commands."""
        return [shell.id for shell in self._known.values() if not shell.command.is_over]

    def kill(self) -> None:
        """Kill all commands without waiting."""
        for command in self._commands:
            command.kill()

    @property
    def _commands(self) -> list[ShellCommand]:
        return [*self._awaited, *(shell.command for shell in self._known.values())]

    async def close(self) -> None:
        """Kill all commands, wait for their end, and remove the directory."""
        self.kill()
        try:
            for command in self._commands:
                await command.killed()
        finally:
            self._known.clear()
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._remove_directory)

    def _temporary_directory(self) -> str:
        with self._lock:
            if self._temporary is None:
                self._temporary = tempfile.mkdtemp(prefix="kantan-shell-", dir=_outside(self._root))
                weakref.finalize(self, _remove, self._temporary, os.getpid())
            return self._temporary

    def _remove_directory(self) -> None:
        with self._lock:
            directory, self._temporary = self._temporary, None
        if directory is not None:
            _remove(directory, os.getpid())


def _outside(root: str) -> str:
    """Commands must not be able to put a link into this directory for temporary files."""
    for place in (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm", Path.home()):  # noqa: S108
        if os.access(place, os.W_OK | os.X_OK) and not Path(os.path.realpath(place)).is_relative_to(root):
            return str(place)
    raise ShellUnavailableError(reason=f"all directories for temporary files are in {root}")


def _remove(directory: str, owner: int) -> None:
    if os.getpid() == owner:  # a fork ends as well
        shutil.rmtree(directory, ignore_errors=True)


class ShellsOfRuns:
    """Finds the shells of a run, which end with it.

    A run that waits for an approval has not ended for the user: its shells continue for ``paused_seconds``,
    or if it is resumed with the same context, until that run is over.
    """

    def __init__(self, most: int, paused_seconds: float, root: str) -> None:
        self._most = most
        self._root = root
        self._paused_seconds = paused_seconds
        # The SDK's own runner does not identify the run of a call.
        self._outside = Shells(most, root, is_shared=True)
        self._parked: OrderedDict[int, tuple[Any, Shells, asyncio.TimerHandle]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, run: Run | None) -> Shells:
        """Return the shells of a run; without a run, the shells of the process."""
        if run is None:
            return self._outside
        shells: Shells | None = run.state.get(self)
        if shells is None:
            shells = run.state[self] = self._taken_over(run.context) or Shells(self._most, self._root)
            run.at_end(partial(self._end, run, shells))
        return shells

    def adopt(self, run: Run | None) -> None:
        """Give a run the shells of the run that it resumes, even if it uses none."""
        if run is not None and self._parked and id(run.context) in self._parked:
            self.of(run)

    async def _end(self, run: Run, shells: Shells) -> None:
        run.state.pop(self, None)
        if shells.running and run.outcome == "finished" and getattr(run.result, "interruptions", None):
            for one in self._park(run.context, shells):
                await one.close()
        else:
            await shells.close()

    def _park(self, context: Any, shells: Shells) -> list[Shells]:
        """Return the shells dropped for lack of space."""
        end = asyncio.get_running_loop().call_later(self._paused_seconds, shells.kill)
        with self._lock:
            ended = [self._parked.pop(id(context), None)]
            # With the context, so that no other object gets its id.
            self._parked[id(context)] = (context, shells, end)
            while len(self._parked) > _MOST_PARKED:
                ended.append(self._parked.popitem(last=False)[1])
        return [parked[1] for parked in ended if parked is not None]

    def _taken_over(self, context: Any) -> Shells | None:
        with self._lock:
            parked = self._parked.pop(id(context), None)
        if parked is None:
            return None
        parked[2].cancel()
        return parked[1]
