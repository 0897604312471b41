"""``/undo``: reverts changes of files, turn by turn."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

import anyio
import typer
from anyio import to_thread

from kantan_agents.cli.chat.conversation import Conversation
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.chat.undo.snapshots import NotedChange, Snapshots, Turn
from kantan_agents.cli.chat.undo.turn_notes import TurnNotes
from kantan_agents.cli.terminal.console import BAD, LABEL, NOTICE
from kantan_agents.cli.terminal.file_diff import SHOWN_LINES, diff_lines, visible
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.show_quantities import counted, short_time
from kantan_agents.errors import ChatCommandError
from kantan_agents.support.data_folder import data_folder
from kantan_agents.support.noted_changes import changes_noted

if TYPE_CHECKING:
    from pathlib import Path

    from kantan_agents.cli.chat.editor import Editor
    from kantan_agents.cli.chat.undo.put_back import PlannedFile

_TITLE: Final = 60
_NAMED: Final = 20
_WORDS: Final = {"y": "[y]es", "a": "[a]ll, also what has changed since", "n": "[n]o"}


def open_snapshots(*, is_kept: bool) -> Snapshots:
    """Open the user's snapshots, or new ones in memory. Blocks."""
    try:
        return Snapshots(data_folder() / "undo" / "snapshots.sqlite3" if is_kept else None)
    except (sqlite3.Error, OSError, RuntimeError) as error:
        typer.echo(one_line(f"warning: /undo works only until this chat ends: {error}"), err=True)
        return Snapshots(None)


class Undo:
    """Restores what tools changed, if the user agrees."""

    def __init__(self, snapshots: Snapshots, screen: Screen, editor: Editor | None, folder: Path) -> None:
        self._snapshots = snapshots
        self._screen = screen
        self._editor = editor
        self._folder = folder
        self._passed: set[Turn] = set()

    @asynccontextmanager
    async def noting(self, turn: Turn) -> AsyncIterator[None]:
        """Note changes in the block; report any that cannot be undone."""
        notes = TurnNotes(self._snapshots, turn)
        token = changes_noted.set(notes)
        try:
            yield
        finally:
            changes_noted.reset(token)
            if notes.has_files:
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(notes.end)
            for lost in notes.lost:
                self._screen.block(f"/undo cannot put back {visible(lost)}", NOTICE)
            dropped, self._snapshots.dropped = self._snapshots.dropped, 0
            if dropped:
                self._screen.line(f"/undo can no longer reach {counted(dropped, 'old answer')}.", NOTICE)

    async def show(self, conversation: Conversation) -> None:
        """Show the undoable turns, latest first."""
        turns = await self._turns(conversation)
        for number, files, at in turns:
            when = short_time(datetime.fromtimestamp(at, timezone.utc))
            self._screen.line(f"{when}  {counted(files, 'file')}  {_question(conversation, number)}")
        if not turns:
            self._screen.line("No answer of this conversation has changed files that can be put back.")

    async def undo(self, conversation: Conversation) -> None:
        """Restore the latest changed turn; E196 without one."""
        from kantan_agents.cli.chat.undo.put_back import plan  # imports the toolkit

        for number, *_ in await self._turns(conversation):
            if (turn := (conversation.kept.id, number)) not in self._passed:
                changes = await to_thread.run_sync(self._snapshots.of_turn, turn)
                if files := await to_thread.run_sync(plan, changes, str(self._folder)):
                    break
        else:
            reason = "no further answer of this conversation has changed a file that can be put back"
            raise ChatCommandError(command="/undo", reason=reason)
        self._screen.block(f'The answer to "{_question(conversation, number)}" has changed:', LABEL)
        chosen = await self._chosen(files, [change.root for change in changes if change.kind == "command"])
        if chosen:
            await self._put_back(conversation, turn, changes, files, chosen)
        if chosen or not any(one.is_as_written for one in files):
            self._passed.add(turn)  # the next one goes further back, whatever remains of this one

    async def _turns(self, conversation: Conversation) -> list[tuple[int, int, float]]:
        try:
            return await to_thread.run_sync(
                self._snapshots.turns, conversation.kept.id, len(conversation.kept.turns)
            )
        except (sqlite3.Error, OSError) as error:
            raise ChatCommandError(
                command="/undo", reason=f"the snapshots cannot be read: {error}"
            ) from error

    async def _chosen(self, files: Sequence[PlannedFile], commands: Iterable[str]) -> list[PlannedFile]:
        for one in files:
            self._screen.block(f"  {visible(one.path)} {_fate(one)}", "" if one.is_as_written else NOTICE)
            if one.protected is not None:
                self._screen.block(f"  {visible(one.path)} is protected: {one.protected}.", BAD)
        for command in commands:
            self._screen.line(f"  not undone: {one_line(command)}", NOTICE)
        safe = [one for one in files if one.is_as_written]
        possible = [one for one in files if one.problem is None]
        lines = await to_thread.run_sync(_diffs, possible)
        self._screen.block("\n".join(lines[:SHOWN_LINES]))
        if rest := lines[SHOWN_LINES:]:
            self._screen.block(f"... and {len(rest):,} more lines: type s to see them", NOTICE)
        choices = {"y": safe, "a": possible if possible != safe else []}
        choices = {**{key: files for key, files in choices.items() if files}, "n": []}
        question = ", ".join(_WORDS[key] for key in choices)
        typed = "" if possible else "n"
        while typed not in choices and self._editor is not None:
            try:
                typed = (await self._editor.ask(f"Put back? {question}: ")).strip().lower()
            except (KeyboardInterrupt, EOFError):
                break
            typed = {"yes": "y", "all": "a", "no": "n"}.get(typed, typed)
            if typed == "s":
                self._screen.block("\n".join(rest))
            elif typed not in choices:
                self._screen.line(f"Type {' or '.join(choices)}.", NOTICE)
        chosen = choices.get(typed, [])
        if not chosen:
            self._screen.line("Nothing was put back.", LABEL)
        return chosen

    async def _put_back(
        self,
        conversation: Conversation,
        turn: Turn,
        changes: Sequence[NotedChange],
        files: Sequence[PlannedFile],
        chosen: Sequence[PlannedFile],
    ) -> None:
        from kantan_agents.cli.chat.undo.put_back import put_back

        left = [one for one in files if one not in chosen]
        with anyio.CancelScope(shield=True):
            # Noted first: the model must know of it even after a crash.
            await conversation.note("/undo", _note(_question(conversation, turn[1]), chosen, left))
            failed = await to_thread.run_sync(put_back, chosen, changes)
            if failed:
                await conversation.note(
                    "/undo", f"[Not undone after all: {_named([one for one, _ in failed])}]"
                )
            done = [one.file for one in chosen if one not in dict(failed)]
            await to_thread.run_sync(self._snapshots.forget, turn, done)
        for one, reason in failed:
            self._screen.error(f"{visible(one.path)} is left: {reason}")
        self._screen.line(f"{counted(len(done), 'file')} put back.", LABEL)


def _fate(one: PlannedFile) -> str:
    if one.problem is not None:
        return f"is left: {one.problem}"
    if one.has_changed:
        return "has changed since: it is left, unless you answer a"
    if one.file.mode is None:
        return "is removed"
    is_same_mode = one.now is None or stat.S_IMODE(one.now.st_mode) == one.file.mode
    return "gets its old content back" + ("" if is_same_mode else f", and its permissions {one.file.mode:o}")


def _diffs(files: Iterable[PlannedFile]) -> list[str]:
    from kantan_agents.toolkit.files.text import BinaryFileError, FileText

    lines: list[str] = []
    for one in files:
        lines.append(f"{visible(one.path)}:")
        try:
            now, old = (FileText.decode(data).text for data in (one.content, one.file.content or b""))
        except BinaryFileError:
            lines.append("(not a text)")
            continue
        if one.file.mode is None:
            lines += [f"-{line[1:]}" for line in diff_lines(None, now)]
        else:
            lines += diff_lines(None if one.now is None else now, old)
    return lines


def _question(conversation: Conversation, number: int) -> str:
    return one_line(conversation.kept.turns[number - 1].question)[:_TITLE]


def _note(question: str, chosen: Sequence[PlannedFile], left: Sequence[PlannedFile]) -> str:
    still = f" Left as they are: {_named(left)}." if left else ""
    return (
        f'[The user has undone what you did to these files in the answer to "{question}": '
        f"{_named(chosen, ' (removed)')}.{still} What commands did is not undone. "
        "Read a file again before you change it.]"
    )


def _named(files: Sequence[PlannedFile], if_new: str = "") -> str:
    names = [visible(one.path) + (if_new if one.file.mode is None else "") for one in files[:_NAMED]]
    return ", ".join(names) + (f" and {len(files) - _NAMED} more" if len(files) > _NAMED else "")
