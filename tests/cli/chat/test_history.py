"""What was typed in earlier chats: what is kept of it, and who can read it."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.cli.chat import history_file
from kantan_agents.cli.chat.history_file import MOST, Entry, HistoryFile
from kantan_agents.cli.chat.input_history import InputHistory
from kantan_agents.testing import OfflineServer
from tests.cli.chat.shop import paid
from tests.cli.chat.test_approvals import QUESTION, pay

UP, CTRL_R = "\x1b[A", "\x12"
SECRET = "Use sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2 for it"


@pytest.fixture
def typed(tmp_path: Path) -> HistoryFile:
    return HistoryFile(tmp_path / "data/kantan-agents/history.jsonl")


@pytest.fixture
def in_home(environment: dict[str, str]) -> HistoryFile:
    """The file of the chats on terminals."""
    return HistoryFile(Path(environment["HOME"]) / ".local/share/kantan-agents/history.jsonl")


async def listed(history: InputHistory) -> list[str]:
    await history.refresh()
    return [text async for text in history.load()]


def texts(file: HistoryFile) -> list[str]:
    return [one.text for one in file.read()]


def test_entries_are_kept_whole_and_for_the_owner_only(typed: HistoryFile) -> None:
    for at, text in enumerate(("One?", "Two\nlines \u2028 \x1b[31m", "\ud800")):
        assert typed.add(Entry(at, text))
    assert typed.read() == [Entry(0, "One?"), Entry(1, "Two\nlines \u2028 \x1b[31m"), Entry(2, "\ufffd")]
    assert stat.S_IMODE(typed.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(typed.path.parent.stat().st_mode) == 0o700
    typed.path.chmod(0o644)
    typed.clear()
    assert typed.path.read_bytes() == b""
    assert stat.S_IMODE(typed.path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text",
    [
        *(SECRET, "curl -H 'Authorization: Bearer abcdef123456'", "DB_PASSWORD=hunter2-9f8e7d", " not this"),
        *("postgres://shop:s3cr3t@db/shop", "/login\npassword: tr0ub4dor&3", "\tnor this", "x" * 20_001),
    ],
)
def test_secrets_lines_with_a_space_before_and_very_long_texts_are_not_kept(
    typed: HistoryFile, text: str
) -> None:
    assert not typed.add(Entry(0, text))
    assert not typed.path.exists()


def test_the_file_stays_small(typed: HistoryFile) -> None:
    typed.create()
    lines = [json.dumps([at, f"Text {at}"]).encode() + b"\n" for at in range(2 * MOST)]
    typed.path.write_bytes(b"".join(lines))
    inode = typed.path.stat().st_ino
    typed.add(Entry(3 * MOST, "last"))
    assert typed.path.read_bytes().count(b"\n") == MOST
    assert texts(typed)[-2:] == [f"Text {2 * MOST - 1}", "last"]
    for at in range(60):
        typed.add(Entry(at, "x" * 19_000))
        assert typed.path.stat().st_size <= 1_000_000
    assert len(typed.read()) >= 20
    assert typed.path.stat().st_ino == inode  # what a sandbox hides is the file, not its name


def test_a_damaged_or_huge_file_is_read_as_far_as_possible(typed: HistoryFile) -> None:
    typed.create()
    with typed.path.open("wb") as file:
        file.truncate(5_000_000_000)  # no disk is used for it
        file.seek(0, os.SEEK_END)
        file.write(b'\n\xff\xfe\n[1]\n{"a": 1}\n[1, 2]\n["x", "y"]\nnull\n' + b"[" * 9999 + b"\n[9, null]\n")
        file.write(b'[3.5, "good"]\n\n[4, "cut o')
    assert typed.read() == [Entry(3.5, "good")]
    assert typed.add(Entry(5, "next"))
    assert texts(typed) == ["good", "next"]
    assert typed.path.stat().st_size < 1000


def test_chats_at_the_same_time_lose_nothing(typed: HistoryFile) -> None:
    typed.create()
    lines = (json.dumps([at, "old"]) + "\n" for at in range(2 * MOST - 20))
    typed.path.write_text("".join(lines))

    def write(name: str) -> None:
        for number in range(25):
            HistoryFile(typed.path).add(Entry(1, f"{name} {number}"))

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = [text for text in texts(typed) if text != "old"]
    assert len(kept) == 100
    for name in "abcd":
        assert [text for text in kept if text[0] == name] == [f"{name} {number}" for number in range(25)]


def in_place_of(path: Path, kind: str) -> None:
    path.parent.mkdir(parents=True)
    other = path.parent.parent / "other"
    other.write_text('[1, "other"]\n')
    match kind:
        case "link":
            path.symlink_to(other)
        case "hard link":
            path.hardlink_to(other)
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "folder that is a file":
            path.parent.rmdir()
            path.parent.write_text("")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        *(("link", "it is a link"), ("hard link", "it is not a plain"), ("pipe", "it is not a plain")),
        *(("folder", "Is a directory"), ("folder that is a file", "File exists")),
    ],
)
async def test_what_is_not_a_file_of_ones_own_is_left_alone(
    typed: HistoryFile, kind: str, reason: str
) -> None:
    in_place_of(typed.path, kind)
    said: list[str] = []
    history = InputHistory(typed, said.append)
    assert await listed(history) == []
    await history.keep("Hello")
    await history.keep("Again")
    assert await listed(history) == ["Again", "Hello"]
    assert len(said) == 1 and f"({reason}" in said[0] and str(typed.path) in said[0]
    assert (typed.path.parent.parent / "other").read_text() == '[1, "other"]\n'


def test_the_file_of_somebody_else_is_left_alone(typed: HistoryFile, monkeypatch: pytest.MonkeyPatch) -> None:
    typed.create()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(OSError, match="not a plain file of yours"):
        typed.read()


class FullDisk(FileIO):
    """A file on a disk with space for three more bytes."""

    def write(self, data: Any) -> int:
        return super().write(data[:3])


async def test_on_a_full_disk_the_file_stays_as_it_is_and_the_chat_goes_on(
    typed: HistoryFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed.add(Entry(0, "before"))
    said: list[str] = []
    history = InputHistory(typed, said.append)
    monkeypatch.setattr(history_file, "FileIO", FullDisk)
    for text in ("One", "Two"):
        await history.keep(text)
    assert said == [f"What you type is not kept for later chats ({os.strerror(errno.ENOSPC)}): {typed.path}"]
    assert await listed(history) == ["Two", "One"]
    monkeypatch.undo()
    assert texts(typed) == ["before"]


async def test_the_latest_entry_is_first_whichever_chat_it_is_from(typed: HistoryFile) -> None:
    one, two = InputHistory(typed, print), InputHistory(typed, print)
    for history, text in ((one, "first"), (two, "second"), (one, SECRET), (two, "third"), (two, "third")):
        await history.keep(text)
    await one.keep("  \n")
    assert await listed(one) == ["third", SECRET, "second", "first"]
    assert await listed(two) == ["third", "second", "first"]
    await one.clear()
    assert await listed(one) == await listed(two) == []


async def test_a_file_that_another_program_holds_delays_nobody_for_long(
    typed: HistoryFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kantan_agents.cli.chat.input_history._PATIENCE", 0.01)
    said: list[str] = []
    history = InputHistory(typed, said.append)
    with typed._locked():
        typed.create()  # as at the start of a chat
        await history.keep("Hello")
    assert said == [f"What you type is not kept for later chats (it takes too long): {typed.path}"]


async def test_without_saving_nothing_is_kept(typed: HistoryFile) -> None:
    history = InputHistory(None, print)
    await history.keep("Hello")
    assert await listed(history) == ["Hello"]


def test_what_was_typed_is_found_in_the_next_chat_and_in_another_one(chat: Any, in_home: HistoryFile) -> None:
    with OfflineServer(lambda _: "Fine.") as server:
        terminal = chat(server)
        for count, text in enumerate(("Capital of Italy?", " not this", SECRET, "Two\x1b\rlines"), 1):
            terminal.enter(text, until="Fine.", count=count)
            terminal.wait_for_prompt()
        terminal.type(f"{UP}{UP}{UP}")  # through both lines, to what only this chat knows
        terminal.wait_for("sk-proj", 2)
        other = chat(server)
        other.ask("/cost", "No model was called yet.")
        terminal.type("\x03")
        terminal.wait_for_prompt()
        terminal.ask("/model", "model: ")
        terminal.type(f"{UP}{UP}", until="/cost")
        terminal.type("\x03")
        terminal.wait_for_prompt()
        terminal.type(f"{CTRL_R}ital", until="> Capital of Italy?", count=2)
        terminal.type("\r")  # takes it to the prompt, where it can be changed
        terminal.enter("\x05 Again.", until="Fine.", count=5)
    expected = ["Capital of Italy?", "Two\nlines", "/cost", "/model", "Capital of Italy? Again."]
    assert texts(in_home) == expected
    assert stat.S_IMODE(in_home.path.stat().st_mode) == 0o600


def test_answers_are_not_kept_and_the_history_can_be_removed(
    chat: Any, shop: str, folder: Path, in_home: HistoryFile
) -> None:
    with OfflineServer([pay(50), "I see."]) as server:
        terminal = chat(server, "--agent", shop)
        terminal.enter("Pay.", until=QUESTION)
        terminal.enter("no", until="Why not?")
        terminal.enter("Because of the weather.", until="I see.")
        assert texts(in_home) == ["Pay."]
        terminal.enter("/history", until="2 of your messages and commands are in ")
        terminal.enter("/history all", until="it is /history or /history clear, not 'all'")
        terminal.ask("/history clear", "The history is removed.")
        terminal.type(f"{UP}x", until="> x")
    assert in_home.path.read_bytes() == b"" and paid(folder) == []


def test_a_chat_begins_without_a_history_that_cannot_be_used(chat: Any, in_home: HistoryFile) -> None:
    with OfflineServer(lambda _: "Fine.") as server:
        terminal = chat(server, "--no-save")
        terminal.ask("Hello", "Fine.")
        terminal.type(UP, until="> Hello", count=2)
        assert not in_home.path.parent.exists()
        in_place_of(in_home.path, "link")
        terminal = chat(server)
        for count in (1, 2):
            terminal.enter("Hello", until="Fine.", count=count)
        assert terminal.shown.count("is not kept for later chats") == 1
        terminal.enter("/history clear", until="[E196] Cannot run /history: what is typed")
