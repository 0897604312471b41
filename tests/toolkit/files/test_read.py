"""``Read``: pages of numbered lines of any file, within bounds."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kantan_agents.toolkit.files.opening import is_same_mount
from kantan_agents.toolkit.files.read import MAX_LINE, read_lines
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.files.threads import SearchStop
from tests.toolkit.files.calling import Tools


async def test_lines_have_numbers_and_the_rest_is_announced(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 11)))
    answer = await Tools(tmp_path)("Read", file_path="a.txt", offset=3, limit=2)
    assert answer == "     3\tline 3\n     4\tline 4\n[lines 3 to 4 of 10: go on with offset=5]"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), max_size=6), max_size=30
    ),
    end=st.sampled_from(["\n", "\r\n"]),
    offset=st.integers(1, 35),
    limit=st.integers(1, 35),
    is_ended=st.booleans(),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_a_page_has_the_lines_that_python_reads(
    tmp_path: Path, lines: list[str], end: str, offset: int, limit: int, is_ended: bool, encoding: str
) -> None:
    text = end.join(lines) + (end if is_ended and lines else "")
    if text.startswith("\ufeff"):
        return  # a mark, not a character
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    answer = read_lines(Root.at(tmp_path), "a.txt", offset, limit, SearchStop())
    wanted = text.replace("\r\n", "\n").split("\n")
    wanted = wanted[:-1] if not wanted[-1] else wanted
    shown = [line for line in answer.split("\n") if not line.startswith("[")]
    page = wanted[offset - 1 : offset - 1 + limit]
    assert shown == [f"{offset + place:>6}\t{line}" for place, line in enumerate(page)]
    assert (f"offset={offset + limit}]" in answer) == (offset - 1 + limit < len(wanted) and bool(page))


async def test_a_huge_sparse_file_is_recognised_as_binary_at_once(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(2 << 30)
    assert "it is a binary file of 2,147,483,648 bytes" in await Tools(tmp_path)("Read", file_path="huge")


async def test_a_long_line_is_cut_and_the_next_one_is_shown(tmp_path: Path) -> None:
    (tmp_path / "min.js").write_text("é" * 5_000_000 + "\nnext\n")
    answer = await Tools(tmp_path)("Read", file_path="min.js")
    first, second = answer.split("\n")
    assert first == f"     1\t{'é' * MAX_LINE} [cut: the line has 10,000,000 bytes]"
    assert second == "     2\tnext"


async def test_many_lines_end_with_the_page_and_a_full_answer_ends_earlier(tmp_path: Path) -> None:
    (tmp_path / "many").write_text("x\n" * 5_000)
    (tmp_path / "wide").write_text(("x" * 1_000 + "\n") * 2_000)
    tools = Tools(tmp_path)
    many, wide = await tools("Read", file_path="many"), await tools("Read", file_path="wide")
    assert many.endswith("[lines 1 to 2,000 of 5,000: go on with offset=2001]")
    assert len(wide) < 120_000
    assert wide.endswith("of 2,000: go on with offset=102]")


async def test_reading_a_file_that_grows_ends(tmp_path: Path) -> None:
    path, ended = tmp_path / "log", threading.Event()
    path.write_text("x" * 1_000)

    def grow() -> None:
        with path.open("a") as file:
            while not ended.is_set() and path.stat().st_size < 200 << 20:
                file.write("x" * 100_000)

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        assert "[cut: the line has" in await Tools(tmp_path)("Read", file_path="log")
    finally:
        ended.set()
        thread.join()


async def test_what_is_not_utf8_is_shown_as_latin1(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9\n")
    answer = await Tools(tmp_path)("Read", file_path="a.txt")
    assert answer == "     1\tcafé\n[some lines are not UTF-8 and are shown as Latin-1]"


async def test_what_is_not_a_file_is_refused_and_nothing_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        tools = Tools(tmp_path)
        for name, kind in (("pipe", "a named pipe"), ("socket", "a socket"), (".", "a folder")):
            for tool, more in (("Read", {}), ("Write", {"content": "x"})):
                assert f"it is {kind}, not a file" in await tools(tool, file_path=name, **more)


async def test_an_empty_file_and_an_offset_behind_the_end_say_so(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "two").write_text("a\nb")
    tools = Tools(tmp_path)
    assert await tools("Read", file_path="empty") == "[the file is empty]"
    assert await tools("Read", file_path="two", offset=3) == "[the file has only 2 lines]"


async def test_a_wrong_path_names_the_nearest_one(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.py").touch()
    tools = Tools(tmp_path)
    assert "did you mean 'src/main.py'?" in await tools("Read", file_path="src/mian.py")
    assert "'src/main.py': it is a file, not a folder" in await tools("Read", file_path="src/main.py/x")


async def test_absolute_paths_below_the_root_are_accepted_in_both_spellings(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/a.txt").write_text("here")
    (tmp_path / "alias").symlink_to("real")
    tools = Tools(tmp_path / "alias")
    for path in (tmp_path / "real/a.txt", tmp_path / "alias/a.txt"):
        assert await tools("Read", file_path=str(path)) == "     1\there"
    assert "E160" in await tools("Read", file_path=str(tmp_path / "a.txt"))


async def test_a_link_names_its_target_if_that_is_inside(tmp_path: Path) -> None:
    (tmp_path / "root/src").mkdir(parents=True)
    (tmp_path / "root/link").symlink_to("src")
    (tmp_path / "root/out").symlink_to(tmp_path)
    tools = Tools(tmp_path / "root")
    assert "use its target 'src'" in await tools("Read", file_path="link/a.txt")
    answer = await tools("Read", file_path="out/secret.txt")
    assert "a symbolic link that leads out of the root folder" in answer
    assert str(tmp_path) not in answer


async def test_a_root_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.txt").write_text("other")
    tools = Tools(tmp_path / "root")
    (tmp_path / "root").rmdir()
    (tmp_path / "root").symlink_to("other")
    assert "the root folder is no longer there" in await tools("Read", file_path="a.txt")


@pytest.mark.skipif(not os.path.ismount("/proc"), reason="there is no other file system below /")
async def test_another_file_system_below_the_root_is_refused() -> None:
    tools = Tools(Path("/"))
    calls: tuple[tuple[str, dict[str, str]], ...] = (
        ("Read", {"file_path": "/proc/version"}),
        ("Write", {"file_path": "/proc/new", "content": ""}),
        ("LS", {"path": "proc"}),
        ("Glob", {"pattern": "proc/*"}),
        ("Grep", {"pattern": "Linux", "path": "/proc/version"}),
        ("Grep", {"pattern": "Linux", "path": "proc"}),
    )
    for name, arguments in calls:
        answer = await tools(name, **arguments)
        assert (
            "[E160] The path 'proc' is outside of the root folder: another file system is mounted" in answer
        )


@pytest.mark.skipif(not Path("/proc/self/fdinfo").exists(), reason="only Linux says so")
def test_one_mount_is_distinguished_from_another(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    opened = [os.open(path, os.O_RDONLY) for path in (tmp_path, tmp_path / "a", Path("/proc"))]
    try:
        folder, file, other = opened
        assert is_same_mount(folder, file)
        assert not is_same_mount(folder, other)
    finally:
        for one in opened:
            os.close(one)
