"""``BackgroundShells``: background commands that outlive a run."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from kantan_agents.core.pipeline import Run
from kantan_agents.errors import UnknownShellError
from kantan_agents.toolkit.shell.shells import BackgroundShell, Shells

_used: ContextVar[BackgroundShells | None] = ContextVar("kantan_agents_background_shells", default=None)


class _Numbers(Iterator[int]):
    """Id numbers from 1. It has no reference to its owner, which must be collectable."""

    def __init__(self) -> None:
        self.last = 0

    def __next__(self) -> int:
        self.last += 1
        return self.last


class BackgroundShells:
    """Background commands that outlive a run, until ``end()``.

    Without it, a background command ends with the run that started it. Use one for each conversation:

        shells = BackgroundShells()
        with shells.used():
            await agent.run_async("Start the tests.")
            await agent.run_async("Have they passed?")
        await shells.end()

    Commands of subagents still end with the run of the subagent. Everything ends with the event loop and with
    the process.
    """

    def __init__(self) -> None:
        self._numbers = _Numbers()
        self._of: dict[Hashable, Shells] = {}
        weakref.finalize(self, _kill, self._of)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Runs that start in the block store their commands here."""
        token = _used.set(self)
        try:
            yield
        finally:
            _used.reset(token)

    def listed(self) -> list[BackgroundShell]:
        """Return the commands in starting order, without those that ended long ago."""
        found = [shell for shells in self._of.values() for shell in shells.listed()]
        return sorted(found, key=lambda shell: shell.command.started_at)

    def get(self, shell_id: str) -> BackgroundShell:
        """Return a command.

        Raises:
            UnknownShellError: E169: no command has this id.
        """
        listed = self.listed()
        for shell in listed:
            if shell.id == shell_id:
                return shell
        raise UnknownShellError(shell=shell_id, available=[shell.id for shell in listed])

    async def end(self) -> None:
        """End all commands with all of their processes, and forget them. The object can be used again."""
        for shells in list(self._of.values()):
            shells.kill()
        while self._of:
            await self._of.popitem()[1].close()

    def of(self, tools: Hashable, most: int, root: str) -> Shells:
        """Return the shells of a set of tools, which are isolated from other sets. For the library."""
        if tools not in self._of:
            self._of[tools] = Shells(most, root, numbers=self._numbers)
        return self._of[tools]

    def skip(self, number: int) -> None:
        """Skip id numbers up to this one, which an earlier process has used."""
        self._numbers.last = max(self._numbers.last, number)


def used_by(run: Run | None) -> BackgroundShells | None:
    """Return the ``BackgroundShells`` of a run, or None."""
    return None if run is not None and run.parent_run is not None else _used.get()


def _kill(shells: dict[Hashable, Shells]) -> None:
    for one in shells.values():
        one.kill()
