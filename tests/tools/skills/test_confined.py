"""No path leads out of the folder of a skill."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.tools.skills.confined import MAX_FILE_BYTES, RefusedPathError, list_below, read_below

PARTS = (
    "a",
    "b",
    "link",
    "up",
    "out",
    "file.txt",
    "SKILL.md",
    "..",
    ".",
    "",
    "~",
    "\\",
    "C:",
    "\0",
    "\ud800",
)


@pytest.fixture(scope="module")
def tree() -> Iterator[Path]:
    """A folder with files, and links that lead out of it in every way."""
    root = Path(tempfile.mkdtemp())
    inner = root / "skill"
    for place in (inner, inner / "a", inner / "a" / "b"):
        place.mkdir(exist_ok=True)
        (place / "file.txt").write_text("INSIDE", encoding="utf-8")
        (place / "link").symlink_to(root / "secret.txt")
        (place / "up").symlink_to("..")
        (place / "out").symlink_to(root)
        (place / "~").write_text("INSIDE", encoding="utf-8")
    for name in ("secret.txt", "file.txt", "SKILL.md"):
        (root / name).write_text("SECRET", encoding="utf-8")
    yield inner
    shutil.rmtree(root)


@given(st.lists(st.sampled_from(PARTS), max_size=6), st.sampled_from(["/", "//", "/./"]), st.booleans())
def test_a_path_reads_what_is_inside_or_nothing(
    tree: Path, parts: list[str], separator: str, absolute: bool
) -> None:
    path = ("/" if absolute else "") + separator.join(parts)
    with suppress(RefusedPathError):
        assert read_below(tree, path) == "INSIDE"


@given(st.text(max_size=30))
def test_any_text_is_a_path_that_is_read_or_refused(tree: Path, path: str) -> None:
    with suppress(RefusedPathError):
        assert read_below(tree, path) == "INSIDE"


def test_the_absolute_path_of_a_file_inside_is_refused_too(tree: Path) -> None:
    with pytest.raises(RefusedPathError, match="relative"):
        read_below(tree, str(tree / "file.txt"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"a\0b", "binary"), (b"\xff\xfe", "not a text"), (b"x" * (MAX_FILE_BYTES + 1), "larger")],
)
def test_only_texts_of_a_bounded_size_are_read(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(RefusedPathError, match=reason):
        read_below(tmp_path, "file")


def test_a_pipe_and_a_directory_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dir").mkdir()
    for name in ("pipe", "dir", "pipe/x"):
        with pytest.raises(RefusedPathError):
            read_below(tmp_path, name)


def test_a_folder_that_becomes_a_link_is_not_followed(tmp_path: Path) -> None:
    skill, other = tmp_path / "skill", tmp_path / "other"
    (skill / "docs").mkdir(parents=True)
    other.mkdir()
    for place, text in ((skill / "docs", "INSIDE"), (other, "SECRET")):
        (place / "file").write_text(text, encoding="utf-8")
    assert read_below(skill, "docs/file") == "INSIDE"
    shutil.rmtree(skill / "docs")
    (skill / "docs").symlink_to(other)
    with pytest.raises(RefusedPathError):
        read_below(skill, "docs/file")


def test_a_folder_that_is_a_link_itself_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("x", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert read_below(tmp_path / "real", "file") == "x"
    with pytest.raises(RefusedPathError):
        read_below(tmp_path / "link", "file")
    assert list_below(tmp_path / "link", 10) == ([], False)


def test_files_are_listed_without_links_and_hidden_ones_up_to_a_limit(tree: Path, tmp_path: Path) -> None:
    assert list_below(tree, 100) == (
        ["a/b/file.txt", "a/b/~", "a/file.txt", "a/~", "file.txt", "~"],
        False,
    )
    for number in range(30):
        (tmp_path / f"{number:02}").touch()
    (tmp_path / ".hidden").touch()
    names, has_more = list_below(tmp_path, 10)
    assert (len(names), has_more) == (10, True)
    assert list_below(tmp_path / "missing", 10) == ([], False)
