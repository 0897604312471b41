"""Shows and applies changes of pinned files."""

from __future__ import annotations

import anyio.to_thread

from kantan_agents.cli.agents.pinned_files import ChangedFiles, PinnedFiles
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.terminal.console import LABEL, NOTICE
from kantan_agents.cli.terminal.file_diff import visible

_HEAD = "Files have changed. This chat goes on with them as they were:"
_FOOT = "/reload uses them as they are now."


class ReportedChanges:
    """Reports each change once."""

    def __init__(self, pinned: PinnedFiles, screen: Screen) -> None:
        self._pinned = pinned
        self._screen = screen
        self._shown: ChangedFiles | None = None

    async def report(self) -> None:
        """Show new changes."""
        changed = await anyio.to_thread.run_sync(self._pinned.changed)
        if changed is not None and changed != self._shown:
            self._show(changed)
        self._shown = changed

    async def take(self) -> bool:
        """Apply the version that the user saw; show a newer one first, and return False."""
        shown = self._shown
        changed = await anyio.to_thread.run_sync(self._pinned.changed)
        self._shown = changed
        if changed is None:
            self._screen.line("No file has changed.", LABEL)
            return False
        if changed != shown:
            self._show(changed)
            return False
        self._pinned.take(changed)
        self._shown = None
        self._screen.line("They are used from now on.", LABEL)
        return True

    def _show(self, changed: ChangedFiles) -> None:
        lines = "\n".join((*(f"  {visible(line)}" for line in changed.lines), *changed.texts))
        self._screen.block(f"{_HEAD}\n{lines}\n{_FOOT}", NOTICE)
