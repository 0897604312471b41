"""Nothing leaves the root while another program swaps a folder or a file for a link that leads out."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.files.calling import Tools, snapshot

SECRET = "gE7-outside"
ROUNDS = 150


@contextmanager
def meanwhile(act: Callable[[], None]) -> Iterator[list[int]]:
    """Repeat something in a thread; yields a list whose length is how often it has been done."""
    ended, done = threading.Event(), [0]

    def repeat() -> None:
        while not ended.is_set():
            act()
            done[0] += 1

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield done
    finally:
        ended.set()
        thread.join()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("root/d", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "root/d/x.txt").write_text("one\n")
    (tmp_path / "outside/x.txt").write_text(f"{SECRET} one\n")
    return tmp_path


def swap_folder(place: Path) -> None:
    """Swap the folder for a link to the one outside, and back."""
    folder, kept = place / "root/d", place / "root/kept"
    for step in (
        lambda: folder.rename(kept),
        lambda: folder.symlink_to(place / "outside"),
        folder.unlink,
        lambda: kept.rename(folder),
    ):
        with suppress(OSError):  # a call has created the folder in the meantime
            step()
    if kept.exists():
        shutil.rmtree(kept)


def swap_file(place: Path) -> None:
    """Replace the file by a link to the one outside, and back."""
    file, new = place / "root/d/x.txt", place / "root/d/new"
    with suppress(FileNotFoundError):
        new.symlink_to(place / "outside/x.txt")
        new.rename(file)
        new.write_text("one\n")
        new.rename(file)


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("Read", {"file_path": "d/x.txt"}),
    ("Grep", {"pattern": "one", "output_mode": "content"}),
    ("Grep", {"pattern": "one", "output_mode": "content", "path": "d/x.txt"}),
    ("Glob", {"pattern": "**"}),
    ("LS", {"path": "d"}),
    ("Write", {"file_path": "d/x.txt", "content": "one\n"}),
    ("Write", {"file_path": "d/e/y.txt", "content": "one\n"}),
    ("Edit", {"file_path": "d/x.txt", "old_string": "one", "new_string": "one!"}),
]


@pytest.mark.parametrize("swap", [swap_folder, swap_file])
@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_a_swapped_folder_or_file_shows_and_changes_nothing_outside(
    place: Path, tool: str, arguments: dict[str, Any], swap: Callable[[Path], None]
) -> None:
    before, tools = snapshot(place / "outside"), Tools(place / "root")
    with meanwhile(lambda: swap(place)) as swapped:
        answers = [await tools(tool, **arguments) for _ in range(ROUNDS)]
    assert not any(SECRET in answer for answer in answers)
    assert snapshot(place / "outside") == before
    assert swapped[0]
    (place / "root/d").mkdir(exist_ok=True)
    (place / "root/d/x.txt").write_text("one\n")
    assert "E16" not in await tools(tool, **arguments)
