"""``Glob`` and ``LS``: patterns against the standard library, ``.gitignore`` against git."""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kantan_agents.errors import InvalidPatternError
from kantan_agents.toolkit.files.find import find_files
from kantan_agents.toolkit.files.globs import compiled_glob
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.files.threads import SearchStop
from tests.toolkit.files.calling import Tools

_NAMES = st.sampled_from(["a", "ab", "b.py", ".c", "d]e", "é", "a b", "A"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=4).map("/".join)
_STEPS = st.sampled_from(
    ["a", "*", "**", "?", "a*", "*.py", "[ab]*", "[!a]*", "*b*", "d]e", ".*", "[a-b].py"]
)
_PATTERNS = st.lists(_STEPS, min_size=1, max_size=4).map("/".join)


def matches(pattern: list[str], path: list[str]) -> bool:
    """The meaning of a pattern, step by step."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        if len(pattern) == 1:
            return bool(path)
        return matches(pattern[1:], path) or (bool(path) and matches(pattern, path[1:]))
    return bool(path) and fnmatch.fnmatchcase(path[0], pattern[0]) and matches(pattern[1:], path[1:])


@given(pattern=_PATTERNS, path=_PATHS)
def test_a_pattern_matches_what_its_steps_match(pattern: str, path: str) -> None:
    glob = compiled_glob(pattern)
    expected = matches(pattern.split("/"), path.split("/"))
    assert glob.matches(path) == expected
    if expected:  # so that the walk leaves out nothing that matches
        assert path.split("/")[: len(glob.folder)] == list(glob.folder)
        assert glob.depth is None or len(path.split("/")) <= glob.depth


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.{py,md}", "a.md", True),
        ("{src,tests}/**/*.py", "tests/a/b.py", True),
        ("{a,b/{c,d}}/x", "b/d/x", True),
        ("{**/,}x", "a/b/x", True),
        ("a,b", "a,b", True),
        ("\\*", "*", True),
        ("\\*", "a", False),
        ("a**b", "a/b", False),
        ("./a", "a", True),
        ("a//b", "a/b", True),
        ("[]a]", "]", True),
        ("[!]]", "a", True),
        ("[^/]", "a", None),
        ("a.b", "aXb", False),
        ("*", "line\nend", True),
    ],
)
def test_braces_classes_and_escapes(pattern: str, path: str, expected: bool | None) -> None:
    if expected is None:
        with pytest.raises(InvalidPatternError, match="cannot have a /"):
            compiled_glob(pattern)
    else:
        assert compiled_glob(pattern).matches(path) is expected


@pytest.mark.parametrize(
    "pattern", ["", "[a", "{a", "a}", "{" * 20 + "}" * 20, "../a", "a/../b", "x" * 1_001, "\ud800"]
)
def test_a_wrong_pattern_is_an_error(pattern: str) -> None:
    with pytest.raises(InvalidPatternError) as raised:
        compiled_glob(pattern)
    assert raised.value.code == "E164"


def test_a_hostile_pattern_takes_linear_time() -> None:
    assert not compiled_glob("*a" * 300 + "b").matches("a" * 250)


def test_a_glob_of_grep_without_a_slash_matches_at_any_depth() -> None:
    assert compiled_glob("*.py", any_depth=True).matches("a/b/c.py")
    assert not compiled_glob("/*.py", any_depth=True).matches("a/c.py")


async def test_the_newest_file_is_first_and_few_are_given(tmp_path: Path) -> None:
    for number in range(250):
        path = tmp_path / f"{number:03}.txt"
        path.touch()
        os.utime(path, (number, number))
    lines = (await Tools(tmp_path)("Glob", pattern="*.txt")).split("\n")
    assert lines[:2] == ["249.txt", "248.txt"]
    assert lines[199:] == ["050.txt", "[50 more files: use a narrower pattern or a path]"]


async def test_an_answer_of_long_names_is_cut(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number:03}{chr(7) * 250}").touch()
    tools = Tools(tmp_path)
    for answer in (await tools("Glob", pattern="*"), await tools("LS")):
        assert len(answer) < 51_000
        assert f"[{300 - len(answer.splitlines()) + 1} more" in answer.splitlines()[-1]


async def test_paths_are_relative_to_the_root_and_patterns_to_the_path(tmp_path: Path) -> None:
    (tmp_path / "src/a").mkdir(parents=True)
    (tmp_path / "src/a/x.py").touch()
    tools = Tools(tmp_path)
    for arguments in (
        {"pattern": "a/*.py", "path": "src"},
        {"pattern": "src/a/*"},
        {"pattern": f"{tmp_path}/**/x.py"},
        {"pattern": "**", "path": str(tmp_path / "src")},
    ):
        assert await tools("Glob", **arguments) == "src/a/x.py"
    assert await tools("Glob", pattern="*.md") == "[no file matches]"
    assert "did you mean 'src'?" in await tools("Glob", pattern="srcs/*.py")
    assert "E160" in await tools("Glob", pattern="*", path="..")


_IGNORED = st.lists(
    st.sampled_from(
        [
            "a",
            "/a",
            "a/",
            "*.py",
            "!b.py",
            "!a",
            "**/ab",
            "a/**",
            "a/b.py",
            "# a",
            "",
            "[ab]*",
            "!/ab/",
            "\\#x",
            "A",
            "*",
        ]
    ),
    max_size=4,
)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.lists(_PATHS, max_size=8), ignored=st.dictionaries(st.sampled_from(["", "a", "ab"]), _IGNORED)
)
def test_what_gitignore_leaves_out_is_what_git_leaves_out(
    tmp_path: Path, files: list[str], ignored: dict[str, list[str]]
) -> None:
    root = tmp_path / "repository"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for path in files:
        try:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).touch()
        except OSError:  # a file where a folder is wanted, or the other way round
            continue
    for folder, lines in ignored.items():
        if (root / folder).is_dir():
            (root / folder / ".gitignore").write_text("\n".join(lines))
    git = ["git", "-c", "core.excludesFile=/dev/null", "-C", str(root)]
    subprocess.run([*git, "init", "-q"], check=True)
    listed = subprocess.run(
        [*git, "ls-files", "-z", "--others", "--exclude-standard"], check=True, capture_output=True
    )
    expected = sorted(filter(None, listed.stdout.decode().split("\0")))
    found = find_files(Root.at(root), compiled_glob("**"), ".", None, SearchStop())
    assert sorted(line for line in found.split("\n") if not line.startswith("[")) == expected


async def test_an_ignored_folder_is_searched_if_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "build/x").mkdir(parents=True)
    (tmp_path / "build/x/a.py").write_text("one")
    (tmp_path / "build/x/b.log").write_text("one")
    (tmp_path / ".gitignore").write_text("build/\n*.log\n")
    tools = Tools(tmp_path)
    assert await tools("Glob", pattern="**/*.py") == "[no file matches]"
    assert "build/x/a.py" in await tools("Glob", pattern="**/*", path="build")
    assert "build/x/a.py" in await tools("Grep", pattern="one", path="build/x")


async def test_links_are_not_followed_and_git_is_left_out(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("one")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/loop").symlink_to("..")
    (tmp_path / "a/x").write_text("one")
    tools = Tools(tmp_path)
    notice = "[left out: 1 symbolic links, which are not followed]"
    assert await tools("Glob", pattern="**") == f"a/x\n{notice}"
    assert await tools("Grep", pattern="one") == f"a/x\n{notice}"


async def test_a_folder_is_listed_with_what_its_entries_are(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.txt").write_text("12345")
    (tmp_path / "line\nend").touch()
    (tmp_path / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    tools = Tools(tmp_path)
    assert (await tools("LS")).split("\n") == [
        "b/",
        "a.txt (5 bytes)",
        "line\\nend (0 bytes)",
        "link (a symbolic link, not followed)",
        "pipe (not a regular file)",
    ]
    assert await tools("LS", path="b") == "[b has nothing to list]"
    assert await tools("LS", ignore=["*n*", "p?pe", "b"]) == "a.txt (5 bytes)"
    assert "it is a file, not a folder" in await tools("LS", path="a.txt")


async def test_a_name_that_is_not_utf8_is_shown_and_searched(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9")).write_text("one")
    tools = Tools(tmp_path)
    for answer in (await tools("Glob", pattern="*"), await tools("Grep", pattern="one")):
        assert answer == "caf\\xe9"


async def test_a_crowded_folder_is_cut(tmp_path: Path) -> None:
    for number in range(1_010):
        (tmp_path / f"{number:04}").touch()
    answer = await Tools(tmp_path)("LS")
    assert answer.endswith(
        "0999 (0 bytes)\n[10 more entries: find some of them with Glob, or leave some out with ignore]"
    )


def test_a_tree_of_any_depth_is_walked(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(300):  # longer than a path may be
        os.mkdir("d" * 20, dir_fd=folder)
        inner = os.open("d" * 20, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    found = find_files(Root.at(tmp_path), compiled_glob("**"), ".", None, SearchStop())
    assert found == "[no file matches]\n[left out: 1 folders nested too deeply]"
    subprocess.run(["rm", "-rf", str(tmp_path / ("d" * 20))], check=True)
