"""``/undo``: files get back what they had before an answer, and nothing that anyone else has made is lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import anyio
import pytest
from rich.console import Console

from kantan_agents import Agent, toolkit
from kantan_agents.cli.chat.kept_conversation import ChatTurn, KeptConversation
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.chat.undo.put_back import plan, put_back
from kantan_agents.cli.chat.undo.snapshots import NotedChange, SnapshotLimits, Snapshots
from kantan_agents.cli.chat.undo.undo import Undo, open_snapshots
from kantan_agents.errors import ChatCommandError
from kantan_agents.support.noted_changes import changes_noted
from kantan_agents.testing import OfflineServer, ScriptedModel, ScriptedToolCall
from kantan_agents.toolkit import protected
from kantan_agents.toolkit.shell import shell_tools
from kantan_agents.toolkit.shell.sandbox import find_sandbox
from tests.toolkit.calls import call as call_tool
from tests.toolkit.calls import until
from tests.toolkit.files.calling import Tools, snapshot


class Work:
    """A folder with tools, whose changes can be undone.

    Attributes:
        shown: What the person sees.
        notes: What the model is sent.
        typed: The answers to the next questions.
    """

    def __init__(self, folder: Path, snapshots: Snapshots, conversation: str = "one") -> None:
        self.folder = folder
        self.snapshots = snapshots
        self.kept = KeptConversation(conversation, "writer")
        self.notes: list[str] = []
        self.typed: list[str] = []
        self.questions: list[str] = []
        self._output = StringIO()
        editor: Any = self
        self.undo = Undo(snapshots, Screen(Console(file=self._output, width=200)), editor, folder)
        self.tools = Tools(folder, protected="allow")

    async def ask(self, question: str) -> str:
        self.questions.append(question)
        if not self.typed:
            raise KeyboardInterrupt
        return self.typed.pop(0)

    async def note(self, typed: str, text: str) -> None:
        self.notes.append(text)
        self._add(typed)

    def _add(self, question: str) -> None:
        turn = ChatTurn(len(self.kept.turns) + 1, "turn", question)
        self.kept = KeptConversation(self.kept.id, "writer", (*self.kept.turns, turn))

    @asynccontextmanager
    async def turn(self, question: str = "Change it.") -> AsyncIterator[Tools]:
        self._add(question)
        async with self.undo.noting((self.kept.id, len(self.kept.turns))):
            yield self.tools

    async def back(self, *typed: str) -> str:
        """Type ``/undo`` and the answers; return what is shown."""
        self.typed = list(typed)
        start = len(self.shown)
        talk: Any = self
        await self.undo.undo(talk)
        return self.shown[start:]

    @property
    def shown(self) -> str:
        return self._output.getvalue()


@pytest.fixture
def snapshots(tmp_path: Path) -> Any:
    made = Snapshots(tmp_path / "data/undo/snapshots.sqlite3")
    yield made
    made.close()


@pytest.fixture
def work(folder: Path, snapshots: Snapshots) -> Work:
    (folder / "a.txt").write_bytes(b"one\r\n")
    (folder / "a.txt").chmod(0o750)
    return Work(folder, snapshots)


async def test_files_get_back_their_content_and_mode_and_created_ones_are_removed(work: Work) -> None:
    before = snapshot(work.folder)
    async with work.turn("Change VAT.") as tools:
        await tools("Edit", file_path="a.txt", old_string="one", new_string="two")
        await tools("MultiEdit", file_path="a.txt", edits=[{"old_string": "two", "new_string": "three"}])
        await tools("Write", file_path="new/deep/b.txt", content="b")
        await tools("Write", file_path="new/c.txt", content="c")
    shown = await work.back("y")
    assert snapshot(work.folder) == before
    assert 'The answer to "Change VAT." has changed:' in shown
    assert "  a.txt gets its old content back\n" in shown and "  new/c.txt is removed\n" in shown
    assert "-three\n+one\n" in shown and "new/c.txt:\n-c\n" in shown
    assert (
        'in the answer to "Change VAT.": a.txt, new/deep/b.txt (removed), new/c.txt (removed).'
        in work.notes[0]
    )


async def test_permissions_that_have_changed_since_are_named(work: Work) -> None:
    async with work.turn() as tools:
        await tools("Write", file_path="a.txt", content="tool")
    (work.folder / "a.txt").chmod(0o600)
    assert "a.txt gets its old content back, and its permissions 750\n" in await work.back("y")
    assert snapshot(work.folder) == {"a.txt": (0o100750, b"one\r\n")}


async def test_agents_of_modules_and_their_subagents_are_noted(work: Work) -> None:
    def write(path: str) -> dict[str, Any]:
        return {"tool": "Write", "arguments": {"file_path": path, "content": "x"}}

    def ask() -> str:
        """Ask another agent, in a thread and without its events."""
        model = ScriptedModel([write("c.txt"), "Done."])
        inner = Agent("inner", "Write.", model=model, tools=toolkit(work.folder, write=True, approval=False))
        return str(inner.run("Write.")["result"].final_output)

    model = ScriptedModel([write("b.txt"), {"tool": "ask", "arguments": {}}, "Done."])
    agent = Agent(
        "outer", "Write.", model=model, tools=[*toolkit(work.folder, write=True, approval=False), ask]
    )
    async with work.turn():
        await agent.run_async("Write.")
    assert {path.name for path in work.folder.iterdir()} == {"a.txt", "b.txt", "c.txt"}
    await work.back("y")
    assert {path.name for path in work.folder.iterdir()} == {"a.txt"}


async def test_each_undo_goes_one_answer_further_back(work: Work) -> None:
    for number in "23":
        async with work.turn(f"Write {number}.") as tools:
            await tools("Write", file_path="a.txt", content=number)
        async with work.turn("Only talk."):
            pass
    talk: Any = work
    await work.undo.show(talk)
    assert work.shown.index("1 file Write 3.") < work.shown.index("1 file Write 2.")
    assert "talk" not in work.shown
    await work.back("y")
    assert (work.folder / "a.txt").read_text() == "2"
    await work.back("y")
    assert (work.folder / "a.txt").read_bytes() == b"one\r\n"
    with pytest.raises(ChatCommandError, match=r"E196.*no further answer"):
        await work.back("y")


async def test_nothing_is_put_back_without_a_yes(work: Work) -> None:
    async with work.turn() as tools:
        await tools("Write", file_path="a.txt", content="new")
    for typed in (["n"], [], ["x", ""], ["a", "yo", "no"]):
        assert "Nothing was put back." in await work.back(*typed)
        assert (work.folder / "a.txt").read_text() == "new"
    assert work.notes == []
    assert "1 file put back." in await work.back("yes")


async def test_what_has_changed_since_is_left_unless_the_person_wants_it(work: Work) -> None:
    async with work.turn() as tools:
        await tools("Write", file_path="a.txt", content="tool")
        await tools("Write", file_path="b.txt", content="tool")
        await tools("Write", file_path="c.txt", content="tool")
    (work.folder / "a.txt").write_text("mine")
    (work.folder / "c.txt").write_text("mine, too")
    shown = await work.back("y")
    assert "  a.txt has changed since: it is left, unless you answer a\n" in shown
    assert {path.name: path.read_text() for path in work.folder.iterdir()} == {
        "a.txt": "mine",
        "c.txt": "mine, too",
    }
    assert ": b.txt (removed). Left as they are: a.txt, c.txt." in work.notes[0]
    with pytest.raises(ChatCommandError):  # it goes further back
        await work.back()
    again = Work(work.folder, work.snapshots)  # in a chat that is resumed
    again.kept = work.kept
    shown = await again.back("y", "a")
    assert again.questions == ["Put back? [a]ll, also what has changed since, [n]o: "] * 2
    assert "Type a or n.\n" in shown
    assert "-mine, too\n" in shown
    assert snapshot(work.folder) == {"a.txt": (0o100750, b"one\r\n")}


async def test_what_changes_between_two_calls_is_not_lost(work: Work) -> None:
    async with work.turn() as tools:
        await tools("Write", file_path="a.txt", content="tool\n")
        (work.folder / "a.txt").write_text("tool\nmine\n")
        await tools("Edit", file_path="a.txt", old_string="tool", new_string="again")
    assert "a.txt has changed since: it is left, unless you answer a" in await work.back("y", "n")
    assert (work.folder / "a.txt").read_text() == "again\nmine\n"


async def test_a_file_that_was_removed_since_is_not_made_again_in_silence(work: Work) -> None:
    (work.folder / "e").mkdir()
    (work.folder / "e/old.txt").write_text("old")
    before = snapshot(work.folder)
    async with work.turn() as tools:
        for path in ("a.txt", "e/old.txt", "d/b.txt"):
            await tools("Write", file_path=path, content="tool")
    (work.folder / "a.txt").unlink()
    shutil.rmtree(work.folder / "e")
    shutil.rmtree(work.folder / "d")
    shown = await work.back("n")
    for path in ("a.txt", "e/old.txt"):
        assert f"  {path} has changed since: it is left, unless you answer a\n" in shown
    assert "b.txt" not in shown
    work.undo._passed.clear()
    await work.back("a")
    assert snapshot(work.folder) == before


async def test_no_link_is_followed(work: Work, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    async with work.turn() as tools:
        await tools("Write", file_path="a.txt", content="tool")
        await tools("Write", file_path="d/b.txt", content="tool")
    (work.folder / "d").rename(outside / "d")
    (work.folder / "d").symlink_to(outside / "d")
    (work.folder / "a.txt").rename(outside / "a.txt")
    (work.folder / "a.txt").symlink_to(outside / "a.txt")
    before = snapshot(outside)
    shown = await work.back()
    assert (
        "d/b.txt is left: it is a symbolic link" in shown and "a.txt is left: it is a symbolic link" in shown
    )
    assert work.questions == []
    assert snapshot(outside) == before


async def test_a_root_that_became_a_link_is_left(work: Work, tmp_path: Path) -> None:
    async with work.turn() as tools:
        await tools("Write", file_path="a.txt", content="tool")
    work.folder.rename(tmp_path / "moved")
    work.folder.symlink_to(tmp_path / "moved")
    assert "a.txt is left: the folder was replaced by a link" in await work.back()
    work.folder.unlink()
    work.undo._passed.clear()
    assert "a.txt is left: must be a folder that exists" in await work.back()


async def test_a_file_that_changes_while_the_person_reads_is_left(work: Work) -> None:
    async with work.turn() as tools:
        await tools("Write", file_path="a.txt", content="tool")
        await tools("Write", file_path="b.txt", content="tool")
    changes = work.snapshots.of_turn(("one", 1))
    files = plan(changes, str(work.folder))
    for name in ("a.txt", "b.txt"):
        (work.folder / name).write_text("mine")
    failed = put_back(files, changes)
    assert ["[E163]" in reason for _, reason in failed] == [True, True]
    assert (work.folder / "a.txt").read_text() == (work.folder / "b.txt").read_text() == "mine"


async def test_a_file_that_cannot_be_put_back_is_explained_and_the_model_knows(
    work: Work, monkeypatch: Any
) -> None:
    async with work.turn() as tools:
        await tools("Write", file_path="a.txt", content="tool")
        await tools("Write", file_path="b.txt", content="tool")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kantan_agents.cli.chat.undo.put_back.replace_file", full)
    shown = await work.back("y")
    assert "a.txt is left: [Errno 28] No space left on device" in shown and "1 file put back." in shown
    assert work.notes[1] == "[Not undone after all: a.txt]"
    assert snapshot(work.folder) == {"a.txt": (0o100750, b"tool")}
    assert [change.path for change in work.snapshots.of_turn(("one", 1))] == ["a.txt"]


async def test_a_crash_in_the_middle_leaves_each_file_old_or_new(work: Work, monkeypatch: Any) -> None:
    class Killed(BaseException):
        pass

    (work.folder / "b.txt").write_text("old")
    async with work.turn() as tools:
        for name in ("a.txt", "b.txt", "c.txt"):
            await tools("Write", file_path=name, content="tool")
    rename = os.rename

    def die(part: str, name: str, **folders: Any) -> None:
        if name == "b.txt":
            raise Killed
        rename(part, name, **folders)

    monkeypatch.setattr(os, "rename", die)
    with pytest.raises(Killed):
        await work.back("y")
    monkeypatch.undo()
    found = {path.name: path.read_text() for path in work.folder.iterdir()}
    assert found == {"a.txt": "one\n", "b.txt": "tool", "c.txt": "tool"}
    assert ": a.txt, b.txt, c.txt (removed)." in work.notes[0]
    shown = await work.back("y")
    assert "a.txt" not in shown and "2 files put back." in shown
    assert {path.name: path.read_text() for path in work.folder.iterdir()} == {
        "a.txt": "one\n",
        "b.txt": "old",
    }


@pytest.mark.slow
async def test_a_protected_file_is_left_while_a_command_runs_that_could_then_write_it(work: Work) -> None:
    if isinstance(find_sandbox(str(work.folder), "/bin/sh", writes=True, network=False, readable=()), str):
        pytest.skip("bubblewrap is not installed here, or does not work")
    bash = shell_tools(work.folder, approval=False)[0]
    async with work.turn() as tools:
        await tools("Write", file_path=".mcp.json", content="{}")
        await tools("Write", file_path="b.txt", content="x")
    async with anyio.create_task_group() as group:
        group.start_soon(partial(call_tool, bash, command="touch begun; sleep 1000"))
        await until((work.folder / "begun").exists)
        shown = await work.back("y")
        group.cancel_scope.cancel()
    assert ".mcp.json is left: a command is running that may not change it, and could then" in shown
    assert not (work.folder / "b.txt").exists() and (work.folder / ".mcp.json").exists()
    work.undo._passed.clear()
    assert f".mcp.json is protected: {protected.SERVERS}." in await work.back("y")
    assert not (work.folder / ".mcp.json").exists()


async def test_a_file_of_another_folder_is_shown_with_it(work: Work, tmp_path: Path) -> None:
    async with work.turn() as tools:
        await tools("Write", file_path="b.txt", content="x")
    work.undo._folder = tmp_path
    assert f"  {work.folder}/b.txt is removed\n" in await work.back("y")


async def test_protected_files_are_shown_first(work: Work) -> None:
    async with work.turn() as tools:
        await tools("Write", file_path="long.txt", content="x\n" * 1000)
        await tools("Write", file_path=".mcp.json", content="{}")
    shown = await work.back("n")
    assert shown.index(".mcp.json is protected") < shown.index("long.txt is removed")
    assert "-{}\n" in shown.partition("more lines")[0]


async def test_names_and_texts_cannot_change_what_is_seen(work: Work) -> None:
    async with work.turn("\u202eevil\x1b[2J") as tools:
        await tools("Write", file_path="a\u200b\u115f.txt", content="x")
        await tools("Write", file_path="a.txt", content="\x1b[2Jx")
        changes_noted.get().command_starts("rm -rf \u202e\x1b[2J")  # type: ignore[union-attr]
    shown = await work.back("y")
    assert "\x1b" not in shown and "\u202e" not in shown and "\u200b" not in shown and "\u115f" not in shown
    assert "not undone: rm -rf [U+202E]" in shown and "-[U+001B][2Jx" in shown
    assert "\x1b" not in work.notes[0]


async def test_a_long_change_is_shown_in_two_parts(work: Work) -> None:
    async with work.turn() as tools:
        await tools(
            "Write", file_path="long.txt", content="".join(f"line {number}\n" for number in range(1000))
        )
    shown = await work.back("s", "n")
    before, _, after = shown.partition("more lines: type s to see them")
    assert "-line 100\n" in before and "-line 999" not in before and "-line 999\n" in after


async def test_other_calls_and_commands_alone_leave_nothing(work: Work, tmp_path: Path) -> None:
    async with work.turn() as tools:
        await tools("Read", file_path="a.txt")
        await tools("Edit", file_path="a.txt", old_string="missing", new_string="x")
        changes_noted.get().command_starts("ls")  # type: ignore[union-attr]
    assert not (tmp_path / "data").exists()
    assert changes_noted.get() is None


async def test_a_write_that_fails_is_nothing_to_undo(work: Work, monkeypatch: Any) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    async with work.turn() as tools:
        monkeypatch.setattr(os, "fsync", full)
        assert "[E161]" in await tools("Write", file_path="a.txt", content="x")
        assert "[E161]" in await tools("Write", file_path="b.txt", content="x")
        monkeypatch.undo()
    with pytest.raises(ChatCommandError, match="no further answer"):
        await work.back()


async def test_what_is_not_kept_is_said(folder: Path) -> None:
    work = Work(folder, Snapshots(None, SnapshotLimits(file_bytes=10, total_bytes=100_000)))
    for name in ("large.txt", "small.txt"):
        (folder / name).write_text("x" * (11 if name == "large.txt" else 10))
    async with work.turn() as tools:
        await tools("Write", file_path="large.txt", content="")
        await tools("Write", file_path="small.txt", content="")
    assert "/undo cannot put back large.txt: at most 10 bytes a file are stored" in work.shown
    assert "large.txt is left: its old content was not kept" in await work.back("y")
    assert (folder / "small.txt").read_text() == "x" * 10
    work.snapshots.close()


def file_of(size: int = 0, path: str = "a") -> NotedChange:
    return NotedChange("file", "/", path, 0o644, b"x" * size)


def test_the_oldest_turns_make_space(tmp_path: Path) -> None:
    kept = Snapshots(tmp_path / "s", SnapshotLimits(turns=3, total_bytes=200_000))
    for number in range(1, 6):
        assert kept.keep(("one", number), file_of(), b"")
    assert [number for number, *_ in kept.turns("one", 9)] == [5, 4, 3]
    assert kept.dropped == 2
    assert kept.keep(("two", 1), file_of(100_000), b"")
    assert kept.keep(("two", 2), file_of(100_000), b"")
    assert [number for number, *_ in kept.turns("two", 9)] == [2]
    assert not kept.keep(("two", 2), file_of(100_000, "b"), b"")  # a turn does not remove itself
    assert not kept.keep(("two", 3), file_of(200_000), b"")
    assert (tmp_path / "s").stat().st_size < 200_000
    kept.forget(("two", 2), [file_of(), file_of(path="b")])
    assert kept.turns("two", 9) == [(3, 1, kept.turns("two", 9)[0][2])]
    kept.close()
    assert (tmp_path / "s").stat().st_size < 50_000


def test_what_is_old_is_removed_when_a_chat_starts(tmp_path: Path) -> None:
    path = tmp_path / "s"
    kept = Snapshots(path)
    secret = NotedChange("file", "/", "a", 0o644, b"gE7-secret")
    kept.keep(("one", 1), secret, b"")
    kept.close()
    Snapshots(path, SnapshotLimits(days=1)).close()
    assert b"gE7-secret" in path.read_bytes()
    Snapshots(path, SnapshotLimits(days=-1)).close()
    assert b"gE7-secret" not in path.read_bytes()


def test_snapshots_are_for_their_owner_only(snapshots: Snapshots, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        snapshots.keep(("one", 1), file_of(), b"")
    finally:
        os.umask(old)
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "data/undo").rglob("*")}
    assert found == {"snapshots.sqlite3": 0o600}
    assert stat.S_IMODE((tmp_path / "data/undo").stat().st_mode) == 0o700


async def test_two_chats_do_not_mix(work: Work, snapshots: Snapshots, tmp_path: Path) -> None:
    other = Work(work.folder, Snapshots(tmp_path / "data/undo/snapshots.sqlite3"), "two")
    async with work.turn() as tools, other.turn():
        pass
    async with work.turn() as tools:
        await tools("Write", file_path="a.txt", content="mine")
    async with other.turn() as tools:
        await tools("Write", file_path="a.txt", content="theirs")
    assert "a.txt has changed since: it is left, unless you answer a" in await work.back("n")
    await other.back("y")
    assert (work.folder / "a.txt").read_text() == "mine"
    work.undo._passed.clear()
    await work.back("y")
    assert (work.folder / "a.txt").read_bytes() == b"one\r\n"
    other.snapshots.close()


async def test_a_turn_that_another_chat_has_added_is_not_undone(work: Work) -> None:
    other = Work(work.folder, work.snapshots)  # both have resumed one conversation
    async with other.turn() as tools:
        await tools("Write", file_path="a.txt", content="theirs")
    with pytest.raises(ChatCommandError):
        await work.back("y")


def test_many_threads_keep_what_they_change(snapshots: Snapshots) -> None:
    def keep(name: str) -> None:
        for number in range(10):
            snapshots.keep(("one", 1), file_of(10, f"{name}{number}"), b"")

    threads = [threading.Thread(target=keep, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(snapshots.of_turn(("one", 1))) == 30


async def test_a_file_of_another_kind_stops_no_tool(work: Work, tmp_path: Path) -> None:
    (tmp_path / "data/undo").mkdir(parents=True)
    (tmp_path / "data/undo/snapshots.sqlite3").write_bytes(b"no database, but long enough " * 50)
    async with work.turn() as tools:
        assert "Replaced" in await tools("Write", file_path="a.txt", content="x")
    assert "/undo cannot put back a.txt: file is not a database" in work.shown
    with pytest.raises(ChatCommandError, match=r"E196.*not a database"):
        await work.back()


def test_without_a_usable_file_they_are_kept_in_memory(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = tmp_path / "kantan-agents/undo/snapshots.sqlite3"
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    kept = open_snapshots(is_kept=True)
    assert kept.keep(("one", 1), file_of(), b"")
    assert "another version of kantan-agents" in capsys.readouterr().err
    kept.close()


def test_without_saving_nothing_is_written(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    kept = open_snapshots(is_kept=False)
    assert kept.keep(("one", 1), file_of(), b"")
    assert list(tmp_path.iterdir()) == []
    kept.close()


async def test_names_that_are_no_text_are_kept(work: Work) -> None:
    async with work.turn() as tools:
        await tools("Write", file_path="caf\udce9.txt", content="x")
    if (work.folder / "caf\udce9.txt").exists():
        await work.back("y")
    assert [path.name for path in work.folder.iterdir()] == ["a.txt"]


def call(name: str, **arguments: Any) -> ScriptedToolCall:
    return ScriptedToolCall(name, arguments)


YES = ("--tools", ".", "--write", "--yes", "Write", "--yes", "Edit")


def test_a_chat_undoes_what_its_tools_did_and_the_model_knows_it(chat: Any, folder: Path, kept: Any) -> None:
    (folder / "a.txt").write_text("one\n")
    replies = [
        [call("Read", file_path="a.txt"), call("Bash", command="echo ran > ran.txt")],
        call("Edit", file_path="a.txt", old_string="one", new_string="two"),
        call("Write", file_path="new/b.txt", content="b"),
        "Done.",
        "I see.",
    ]
    with OfflineServer(replies) as server:
        terminal = chat(server, *YES, "--shell", "--yes", "Bash", "--sandbox", "off")
        terminal.ask("/undo", "no further answer of this conversation")
        terminal.ask("Change it.", "Done.")
        assert (folder / "a.txt").read_text() == "two\n"
        shown = terminal.enter("/undo", until="Put back? [y]es, [n]o:")
        assert "a.txt gets its old content back" in shown and "new/b.txt is removed" in shown
        assert "not undone: echo ran > ran.txt" in shown
        terminal.ask("y", "2 files put back.")
        assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "ran.txt"]
        assert (folder / "a.txt").read_text() == "one\n"
        terminal.ask("And now?", "I see.")
    sent = server.requests[-1].body["input"]
    assert "The user has undone what you did" in sent[-2]["content"] and sent[-1]["content"] == "And now?"
    assert [turn.question for turn in kept().turns] == ["Change it.", "/undo", "And now?"]


def test_what_a_chat_in_a_pipe_changes_is_kept_as_well(lines: Any, folder: Path, tmp_path: Path) -> None:
    with OfflineServer(
        [call("Write", file_path="b.txt", content="b"), "Done.", "Never a command."]
    ) as server:
        done = lines(server, b"Write.\n/undo\n", *YES)
    assert done.returncode == 0 and (folder / "b.txt").exists()
    assert server.requests[-1].body["input"][-1]["content"] == "/undo"
    assert (tmp_path / "home/.local/share/kantan-agents/undo/snapshots.sqlite3").exists()


def test_a_resumed_chat_undoes_what_a_killed_one_has_done(
    chat: Any, folder: Path, environment: dict[str, str]
) -> None:
    (folder / "a.txt").write_text("one\n")
    replies = [
        call("Write", file_path="b.txt", content="b"),
        call("Task", description="x", prompt="Write.", subagent_type="helper"),
        call("Write", file_path="c.txt", content="c"),
        "Written.",
        "Done.",
    ]
    (folder / ".claude/agents").mkdir(parents=True)
    (folder / ".claude/agents/helper.md").write_text("---\nname: helper\ndescription: Helps.\n---\nHelp.\n")
    (folder / ".claude/agents/main.md").write_text("---\nname: main\ndescription: Leads.\n---\nLead.\n")
    with OfflineServer(replies) as server:
        terminal = chat(server, *YES, "--agent", "main")
        terminal.ask("Write.", "Done.")
        terminal.program.kill()
        terminal.wait_for_end()
        assert (folder / "b.txt").exists() and (folder / "c.txt").exists()
        again = chat(server, *YES, "--agent", "main", "--resume", "last")
        again.enter("/undo", until="Put back? [y]es, [n]o:")
        again.enter("y", until="2 files put back.")
    assert not (folder / "b.txt").exists() and not (folder / "c.txt").exists()
