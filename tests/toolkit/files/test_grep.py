"""``Grep``: what matches, against ``re`` and against ripgrep; hostile patterns; files of any size."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kantan_agents.toolkit.files.blocks import text_blocks
from kantan_agents.toolkit.files.grep.lines import Line, LineSearch
from kantan_agents.toolkit.files.grep.output import GrepOutput
from kantan_agents.toolkit.files.grep.pattern import compiled_pattern
from kantan_agents.toolkit.files.grep.tool import ChosenFiles, GrepSearch, OutputMode, search_files
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.files.threads import SearchStop
from tests.toolkit.files.calling import Tools

_TEXTS = st.lists(st.text(st.sampled_from("abé ."), max_size=4), max_size=14)
_PATTERNS = st.sampled_from(
    [
        "a",
        "a+b",
        "^a",
        "b$",
        "^$",
        "a|b",
        "[ab]é",
        "é",
        ".",
        "a.b",
        "x*",
        r"\bab?\b",
        r"\.",
        "(a|b)b",
        r"a\s",
        "[^a]",
        "[^a]+$",
        r"\s+",
        "(?s)a.+b",
        r"\S\s*a",
    ]
)


def nothing() -> None:
    """Stand in for the check of a cancelled call."""


def expected_lines(pattern: str, lines: list[str], before: int, after: int) -> list[tuple[int, str, bool]]:
    """Return what ``grep -B -A`` shows, the simple way."""
    matching = {number for number, line in enumerate(lines, 1) if re.search(pattern, line, re.ASCII)}
    near = {line for number in matching for line in range(number - before, number + after + 1)}
    return [(number, line, number in matching) for number, line in enumerate(lines, 1) if number in near]


@given(
    lines=_TEXTS,
    pattern=_PATTERNS,
    before=st.integers(0, 3),
    after=st.integers(0, 3),
    end=st.sampled_from(["\n", "\r\n"]),
    is_ended=st.booleans(),
    cuts=st.lists(st.integers(0, 14), max_size=3),
)
def test_the_lines_are_those_that_re_finds_however_the_file_is_cut_into_blocks(
    lines: list[str], pattern: str, before: int, after: int, end: str, is_ended: bool, cuts: list[int]
) -> None:
    ended = [line + end for line in lines]
    if lines and lines[-1] and not is_ended:
        ended[-1] = lines[-1]
    shown: list[Line] = []
    search = LineSearch(
        compiled_pattern(pattern, ignore_case=False, multiline=False), nothing, shown.append, before, after
    )
    counted = LineSearch(search.pattern, nothing)
    places = [0, *sorted(min(cut, len(ended)) for cut in cuts), len(ended)]
    for start, stop in itertools.pairwise(places):
        block = "".join(ended[start:stop]).encode()
        if block:
            search.feed(block)
            counted.feed(block)
    wanted = expected_lines(pattern, lines, before, after)
    assert [(line.number, line.data.decode(), line.is_match) for line in shown] == wanted
    assert search.matches == counted.matches == sum(is_match for *_, is_match in wanted)


_GLOBS = ("*.py", "a/*", "**/*.py", "{a,b}/**", "a", "b/*", "c/", "b/c/y.py", "missing")


def found(root: Path, pattern: str, mode: OutputMode, glob: str | None, **options: Any) -> list[str]:
    compiled = compiled_pattern(
        pattern, ignore_case=options.get("i", False), multiline=options.get("U", False)
    )
    around = options.get("C", 0)
    search = GrepSearch(compiled, mode, ChosenFiles.of(glob) if glob else None, around, around)
    answer = GrepOutput(0, 100_000, has_gaps=bool(around))
    search_files(Root.at(root), search, ".", None, answer, SearchStop())
    return "\n".join(answer.entries).split("\n") if answer.entries else []


@pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(_TEXTS, min_size=1, max_size=3),
    pattern=_PATTERNS.filter(lambda pattern: r"\b" not in pattern),  # RE2's is that of ASCII
    mode=st.sampled_from(["files_with_matches", "content", "count"]),
    glob=st.sampled_from([None, *_GLOBS, *(f"!{glob}" for glob in _GLOBS)]),
    options=st.fixed_dictionaries({"i": st.booleans(), "U": st.booleans(), "C": st.integers(0, 2)}),
)
def test_the_answer_is_that_of_ripgrep(
    tmp_path: Path,
    texts: list[list[str]],
    pattern: str,
    mode: OutputMode,
    glob: str | None,
    options: dict[str, Any],
) -> None:
    root = tmp_path / "tree"
    shutil.rmtree(root, ignore_errors=True)
    for name, lines in zip(("a/x.py", "b/c/y.py", "z.txt"), texts, strict=False):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("".join(f"{line}\n" for line in lines))
    if mode != "content":
        options = {**options, "C": 0}
    if mode == "count" or re.match(pattern, ""):
        options = {
            **options,
            "U": False,
        }  # ripgrep counts lines, and shows lines near an empty match at the end
    command = ["rg", "--no-config", "--hidden", "--sort=path", "--color=never", "--no-heading"]
    command += {"files_with_matches": ["-l"], "count": ["-c"], "content": ["-n", f"-C{options['C']}"]}[mode]
    command += ["-i"] * options["i"] + ["-U", "--multiline-dotall"] * options["U"]
    command += ["-g", glob] if glob else []
    done = subprocess.run(
        [*command, "-e", pattern, "."], cwd=root, capture_output=True, check=False, text=True
    )
    wanted = [line.removeprefix("./") for line in done.stdout.splitlines()]
    # ripgrep has files and folders in one order; here, the files of a folder come first.
    assert sorted(found(root, pattern, mode, glob, **options)) == sorted(wanted)


async def test_lines_around_a_match_are_shown_once_and_gaps_are_marked(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{number}\n" for number in range(1, 21)))
    answer = await Tools(tmp_path)("Grep", pattern="^(5|7|15)$", output_mode="content", context=1)
    marked = ((4, "-"), (5, ":"), (6, "-"), (7, ":"), (8, "-"), (14, "-"), (15, ":"), (16, "-"))
    lines = [f"a.txt{mark}{number}{mark}{number}" for number, mark in marked]
    assert answer.split("\n") == [*lines[:5], "--", *lines[5:]]


async def test_a_match_may_span_lines_if_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def a(\n    x,\n):\n    pass\n")
    tools = Tools(tmp_path)
    pattern = r"def a\(.*?\):"
    assert await tools("Grep", pattern=pattern) == "[nothing found]"
    answer = await tools("Grep", pattern=pattern, multiline=True, output_mode="content")
    assert answer == "a.py:1:def a(\na.py:2:    x,\na.py:3:):"


async def test_the_rest_of_a_long_answer_is_reached_by_its_offset(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("one\n" * 5)
    tools, entries = Tools(tmp_path), []
    arguments: dict[str, Any] = {"pattern": "one", "output_mode": "content", "head_limit": 4}
    for offset in (0, 4, 8, 12):
        *lines, last = (await tools("Grep", **arguments, offset=offset)).split("\n")
        is_notice = last.startswith("[there is more: go on with offset=")
        assert is_notice == (offset < 12)
        entries += lines if is_notice else [*lines, last]
    assert entries == [f"{name}:{number}:one" for name in "abc" for number in range(1, 6)]
    assert await tools("Grep", **arguments, offset=15) == "[nothing more found]"


async def test_a_long_line_is_shown_around_its_match(tmp_path: Path) -> None:
    (tmp_path / "min.js").write_text("é" * 2_000_000 + "needle" + "é" * 1_000_000)
    answer = await Tools(tmp_path)("Grep", pattern="needle", output_mode="content")
    assert len(answer) < 1_000
    assert "needle" in answer
    assert "[cut: the line has" in answer


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|aa)+$", "(a*)*b", "(.*a){25}b"])
async def test_a_hostile_pattern_takes_linear_time(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "a.txt").write_text("a" * 50_000 + "!\n")
    assert await Tools(tmp_path)("Grep", pattern=pattern) == "[nothing found]"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a", "missing )"),
        (r"(a)\1", "without look-around and back-references"),
        ("a(?=b)", "without look-around and back-references"),
        ("a{1001}", "invalid repetition size"),
        (r"\pL{1000}(\pL\pN){900}", "pattern too large"),
        ("x" * 6_000, "it has more than 5,000 characters"),
        ("\ud800", "it is not valid Unicode"),
    ],
)
async def test_a_pattern_that_cannot_be_used_is_an_error(tmp_path: Path, pattern: str, reason: str) -> None:
    answer = await Tools(tmp_path)("Grep", pattern=pattern)
    assert "E164" in answer
    assert reason in answer


async def test_encodings_with_a_mark_are_searched_and_binary_files_are_not(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("é one\r\nrest", encoding="utf-16")
    (tmp_path / "b.txt").write_text("é one\n", encoding="utf-8-sig")
    (tmp_path / "c.txt").write_bytes(b"caf\xe9 one\n")
    (tmp_path / "d.bin").write_bytes(b"one\0")
    answer = await Tools(tmp_path)("Grep", pattern="one$", output_mode="content")
    assert answer.split("\n") == [
        "a.txt:1:é one",
        "b.txt:1:é one",
        "c.txt:1:café one",
        "[left out: 1 binary files]",
    ]


async def test_a_large_file_is_searched_in_blocks_and_not_at_all_across_lines(tmp_path: Path) -> None:
    with (tmp_path / "large").open("w") as file:
        for _ in range(3):
            file.write("filler\n" * 1_000_000)
        file.write("needle\n")
    tools = Tools(tmp_path)
    assert await tools("Grep", pattern="needle", output_mode="content") == "large:3000001:needle"
    answer = await tools("Grep", pattern="needle", multiline=True, path="large")
    assert answer == "[nothing found]\n[left out: 1 files too large for this search]"


@given(
    data=st.lists(st.sampled_from([b"a", b"bb", b"\n", b"\r\n", "é".encode()]), max_size=30).map(b"".join),
    block=st.integers(4, 12),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_blocks_are_the_file_and_end_after_lines(tmp_path: Path, data: bytes, block: int) -> None:
    (tmp_path / "a").write_bytes(data)
    with (tmp_path / "a").open("rb", buffering=0) as file:
        blocks = list(text_blocks(file.fileno(), len(data), SearchStop(), block))
    assert b"".join(blocks) == data
    for one in blocks[:-1]:
        assert one.endswith(b"\n") or len(one) >= block
    assert all(len(one) < 3 * block for one in blocks)


async def test_a_file_without_a_match_is_counted_nowhere(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo one\n")
    (tmp_path / "b").write_text("two\n")
    tools = Tools(tmp_path)
    assert await tools("Grep", pattern="ONE", ignore_case=True, output_mode="count") == "a:2"
    assert await tools("Grep", pattern="one", output_mode="content", line_numbers=False) == "a:one\na:two one"
    assert await tools("Grep", pattern="two", path="b") == "b"
    assert "it does not exist" in await tools("Grep", pattern="two", path="c")


@pytest.mark.parametrize("mode", ["count", "content"])
async def test_very_many_matches_in_one_long_line_take_linear_time(tmp_path: Path, mode: str) -> None:
    (tmp_path / "a.txt").write_text("ab" * 200_000)
    answer = await Tools(tmp_path)("Grep", pattern="a", multiline=True, output_mode=mode)
    assert answer == "a.txt:200000" if mode == "count" else answer.startswith("a.txt:1:abab")
