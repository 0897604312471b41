"""``Edit``, ``MultiEdit`` and ``Write``: they change what was asked for and nothing else."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kantan_agents.errors import FileChangedError
from kantan_agents.toolkit.files.editing import edit as editing
from kantan_agents.toolkit.files.editing.edit import edit_file
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.files.text import BinaryFileError, FileText
from tests.toolkit.files.calling import Tools, snapshot
from tests.unprivileged import as_nobody, open_directory

_ENCODINGS = {
    "utf-8": b"",
    "latin-1": b"",
    "utf-8-sig": b"",  # Python writes the mark itself
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}
_LINES = st.text(st.sampled_from("abé \t"), max_size=5)
_ENDS = st.sampled_from(["\n", "\r\n"])


@given(st.binary(max_size=60) | st.text(max_size=30).map(lambda text: text.encode("utf-16")))
def test_a_text_is_written_back_as_it_was(data: bytes) -> None:
    try:
        text = FileText.decode(data)
    except BinaryFileError:
        return
    assert text.encode() == data


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.lists(st.tuples(_LINES, _ENDS), max_size=4),
    after=st.lists(st.tuples(_LINES, _ENDS), max_size=4),
    end=_ENDS,
    last=_LINES,
    new=st.lists(_LINES, min_size=1, max_size=4),
    encoding=st.sampled_from(sorted(_ENCODINGS)),
)
def test_an_edit_keeps_encoding_line_ends_and_the_rest(
    tmp_path: Path,
    before: list[tuple[str, str]],
    after: list[tuple[str, str]],
    end: str,
    last: str,
    new: list[str],
    encoding: str,
) -> None:
    head, tail = ("".join(line + one for line, one in lines) for lines in (before, after))
    # "é" makes sure that it is not UTF-8 if it shall be Latin-1.
    whole = f"é{head}<old>{end}{tail}{last}"
    path = tmp_path / "a.txt"
    path.write_bytes(_ENCODINGS[encoding] + whole.encode(encoding))
    edit_file(Root.at(tmp_path), "a.txt", [{"old_string": "<old>", "new_string": "\n".join(new)}], None)
    wanted = f"é{head}{end.join(new)}{end}{tail}{last}"
    assert path.read_bytes() == _ENCODINGS[encoding] + wanted.encode(encoding)


async def test_a_text_of_several_lines_is_found_whatever_the_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\nthree\r\n")
    await Tools(tmp_path)("Edit", file_path="a.txt", old_string="one\ntwo\n", new_string="1\r\n2\n2b\n")
    assert (tmp_path / "a.txt").read_bytes() == b"1\r\n2\n2b\r\nthree\r\n"


async def test_mode_and_attributes_are_kept_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("echo one\n")
    path.chmod(0o751)
    has_attributes = True
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        has_attributes = False
    tools = Tools(tmp_path)
    await tools("Edit", file_path="run.sh", old_string="one", new_string="two")
    await tools("Write", file_path="run.sh", content="echo three\n")
    assert path.read_text() == "echo three\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    assert not has_attributes or os.getxattr(path, "user.note") == b"kept"
    assert list(snapshot(tmp_path)) == ["run.sh"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("x = 1", "x = 2", "occurs 2 times, in lines 1, 3: add lines around it"),
        ("y = 1", "y = 2", "The nearest lines to its first are:\n     1\tx = 1\n"),
        ("    x = 1", "    x = 2", "line 1 differs only in white space"),
        ("     1\tx = 1", "x = 2", "leave out the line numbers that Read adds"),
        ("zzzzzzzz", "x", "old_string does not occur: read the file again"),
        ("", "x", "old_string is empty"),
        ("x = 1", "x = 1", "old_string and new_string are the same"),
        ("other", "\ud800", "E162"),
    ],
)
async def test_an_edit_that_does_not_fit_says_why_and_changes_nothing(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    (tmp_path / "a.py").write_text("x = 1\nother\nx = 1\n")
    before = snapshot(tmp_path)
    tools = Tools(tmp_path)
    answer = await tools("Edit", file_path="a.py", old_string=old, new_string=new)
    assert "E162" in answer
    assert reason in answer
    assert snapshot(tmp_path) == before


async def test_replace_all_replaces_each_occurrence(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("aaa aa\n")
    answer = await Tools(tmp_path)(
        "Edit", file_path="a.py", old_string="aa", new_string="b", replace_all=True
    )
    assert (tmp_path / "a.py").read_text() == "ba b\n"
    assert answer == "Replaced the text in 2 places of a.py."


@pytest.mark.parametrize(("content", "new"), [("a" * 200_000, "b"), ("a" * 1_000, "b" * 100_000)])
async def test_an_edit_does_not_make_a_file_explode(tmp_path: Path, content: str, new: str) -> None:
    (tmp_path / "a.txt").write_text(content)
    edit = {"old_string": "a", "new_string": new, "replace_all": True}
    assert "occurs too often for one edit" in await Tools(tmp_path)("Edit", file_path="a.txt", **edit)
    assert (tmp_path / "a.txt").read_text() == content


async def test_several_edits_are_made_in_order_or_not_at_all(tmp_path: Path) -> None:
    path, tools = tmp_path / "a.txt", Tools(tmp_path)
    path.write_text("one two three")
    edits: list[dict[str, Any]] = [
        {"old_string": "one", "new_string": "two"},
        {"old_string": "two", "new_string": "2", "replace_all": True},
    ]
    assert await tools("MultiEdit", file_path="a.txt", edits=edits) == "Made 2 edits in a.txt."
    assert path.read_text() == "2 2 three"
    answer = await tools(
        "MultiEdit", file_path="a.txt", edits=[{"old_string": "three", "new_string": "3"}, *edits]
    )
    assert "edit 2 of 3: old_string does not occur" in answer
    assert "(nothing was changed)" in answer
    assert path.read_text() == "2 2 three"
    assert "E162" in await tools("MultiEdit", file_path="a.txt", edits=[])
    answer = await tools("MultiEdit", file_path="a.txt", edits=[{"old_string": "2"}])
    assert answer.startswith("An error occurred while running the tool.")
    assert path.read_text() == "2 2 three"


async def test_edits_at_the_same_time_do_not_lose_one_another(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"<{number}>\n" for number in range(30)))
    toolkits = Tools(tmp_path), Tools(tmp_path)  # the lock is the file's, not the toolkit's
    async with anyio.create_task_group() as group:
        for number in range(30):
            arguments = {"file_path": "a.txt", "old_string": f"<{number}>", "new_string": f"[{number}]"}
            group.start_soon(lambda tools, more: tools("Edit", **more), toolkits[number % 2], arguments)
    assert (tmp_path / "a.txt").read_text() == "".join(f"[{number}]\n" for number in range(30))


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_another_program_changes_meanwhile_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_replaced: bool
) -> None:
    path, original = tmp_path / "a.txt", editing.edited
    path.write_text("one")

    def edited_late(*arguments: Any, **options: Any) -> Any:
        if is_replaced:
            (tmp_path / "new").write_text("two")
            (tmp_path / "new").rename(path)
        else:
            path.write_text("two")
        return original(*arguments, **options)

    monkeypatch.setattr(editing, "edited", edited_late)
    with pytest.raises(FileChangedError):
        edit_file(Root.at(tmp_path), "a.txt", [{"old_string": "one", "new_string": "1"}], None)
    assert path.read_text() == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


async def test_write_creates_folders_and_refuses_what_is_no_file(tmp_path: Path) -> None:
    tools = Tools(tmp_path)
    assert await tools("Write", file_path="a/b/c.txt", content="é") == "Created a/b/c.txt (2 bytes)."
    assert await tools("Write", file_path="a/b/c.txt", content="") == (
        "Replaced the content of a/b/c.txt (0 bytes)."
    )
    assert "it is a folder" in await tools("Write", file_path="a/b", content="")
    assert "it is a folder" in await tools("Write", file_path="a/d/", content="")
    assert "it is a file, not a folder" in await tools("Write", file_path="a/b/c.txt/d", content="")
    deep = "a/" * 300 + "b"
    assert "it has more than 200 names" in await tools("Write", file_path=deep, content="")
    assert "File name too long" in await tools("Write", file_path="x" * 300, content="")
    assert "not valid Unicode" in await tools("Write", file_path="u.txt", content="\ud800")
    assert not (tmp_path / "u.txt").exists()


async def test_a_written_file_takes_no_hard_linked_file_along(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside.txt").write_text("one")
    os.link(tmp_path / "outside.txt", tmp_path / "root/a.txt")
    tools = Tools(tmp_path / "root")
    await tools("Edit", file_path="a.txt", old_string="one", new_string="two")
    assert (tmp_path / "outside.txt").read_text() == "one"
    assert (tmp_path / "root/a.txt").read_text() == "two"


async def test_binary_and_large_files_are_not_edited(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"one\0")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(17 << 20)
    tools, step = Tools(tmp_path), {"old_string": "one", "new_string": "two"}
    assert "it is a binary file" in await tools("Edit", file_path="a.bin", **step)
    assert "at most 16,777,216 can be edited" in await tools("Edit", file_path="huge", **step)


async def test_a_character_that_the_encoding_lacks_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9")
    answer = await Tools(tmp_path)("Edit", file_path="a.txt", old_string="café", new_string="€")
    assert "encoded in latin-1, which has no code for '\\u20ac'" in answer
    assert (tmp_path / "a.txt").read_bytes() == b"caf\xe9"


@pytest.mark.parametrize(
    ("name", "more"),
    [("Edit", {"old_string": "one", "new_string": "two"}), ("Write", {"content": "two"})],
)
async def test_a_file_that_may_not_be_written_is_left_alone(name: str, more: dict[str, str]) -> None:
    with open_directory() as root:
        (root / "a.txt").write_text("one")
        (root / "a.txt").chmod(0o444)
        root.chmod(0o777)
        tools = Tools(root)
        with as_nobody():
            assert "Permission denied" in await tools(name, file_path="a.txt", **more)
        assert (root / "a.txt").read_text() == "one"
        assert [path.name for path in root.iterdir()] == ["a.txt"]
