"""What the process beside a command finds changed, and puts back; and what it sees of its processes."""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.toolkit.shell.unchanged_paths import UnchangedPaths
from kantan_agents.toolkit.shell.usage import Usage, descendants

MIB = 1024 * 1024
HARMLESS = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[user]
\tname = A B
\temail = a@b
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
"""


def kept(root: Path, *absent: str, links: dict[str, str] | None = None) -> UnchangedPaths:
    return UnchangedPaths(
        {"root": str(root), "absent": list(absent), "links": [list(one) for one in (links or {}).items()]}
    )


@pytest.mark.parametrize(
    "line",
    [
        *(
            "\tfsmonitor = x",
            "[core] fsmonitor = x",
            "[core]fsmonitor=x",
            "fsmonitor=x",
            "[include]\n\tpath = x",
        ),
        *(
            '[includeIf "gitdir:/"]',
            "[alias]",
            "\tsshCommand = x",
            "\thooksPath = x",
            "\tpager = x",
            "[filter a]",
        ),
        *(
            "\tname = $(x)",
            "\tname = !x",
            "\tname = x\\\n\n[alias]",
            "\teditor = x",
            '\tfilemode"= x',
            "[core",
            "\0",
        ),
        *(
            "\tworktree = /",
            "[user]\tsigningkey = x",
            "\tname = x\r\tfsmonitor = y",
            "[extensions]",
            "\turl = x",
        ),
    ],
)
def test_a_new_configuration_of_git_is_left_only_if_it_names_no_program(tmp_path: Path, line: str) -> None:
    (tmp_path / ".git").mkdir()
    found = kept(tmp_path, ".git/config")
    (tmp_path / ".git" / "config").write_text(HARMLESS)
    assert not found.is_broken()
    (tmp_path / ".git" / "config").write_text(f"{HARMLESS}{line}\n")
    assert found.is_broken()
    found.restore()
    assert found.moved == [[".git/config", ".git/config.set-aside"]]
    assert not found.is_broken()


def test_new_hooks_are_left_only_if_git_runs_none_of_them(tmp_path: Path) -> None:
    found = kept(tmp_path, ".git/hooks")
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / ".git" / "hooks" / "pre-commit.sample").touch()
    assert not found.is_broken()
    (tmp_path / ".git" / "hooks" / "pre-commit").touch()
    assert found.is_broken()


def test_a_name_that_is_taken_is_counted_up(tmp_path: Path) -> None:
    for name in ("a.set-aside", "a.set-aside-2", "a"):
        (tmp_path / name).touch()
    found = kept(tmp_path, "a")
    found.restore()
    assert found.moved == [["a", "a.set-aside-3"]]


@pytest.mark.parametrize("replaced", ["nothing", "file", "folder", "link"])
def test_a_link_is_put_back(tmp_path: Path, replaced: str) -> None:
    found = kept(tmp_path, links={"a": "b"})
    assert found.is_broken()
    if replaced == "file":
        (tmp_path / "a").write_text("x")
    elif replaced == "folder":
        (tmp_path / "a").mkdir()
    elif replaced == "link":
        (tmp_path / "a").symlink_to("c")
    found.restore()
    assert (tmp_path / "a").readlink() == Path("b")
    assert not found.is_broken()
    assert found.moved == [["a", "" if replaced == "nothing" else "a.set-aside"]]


def test_a_folder_that_becomes_a_repository_is_none_afterwards(tmp_path: Path) -> None:
    found = kept(tmp_path)
    for name in ("HEAD", "objects", "refs"):
        assert not found.is_broken()
        (tmp_path / name).mkdir()
    assert found.is_broken()
    found.restore()
    assert found.moved == [["HEAD", "HEAD.set-aside"]]
    assert not found.is_broken()


def test_what_is_mounted_is_missed_also_if_the_new_file_gets_its_number(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("changed", "replaced", "folder", "removed", "made")]
    for path in paths[:4]:
        path.mkdir() if path.name == "folder" else path.write_text("x")
    found = UnchangedPaths({"root": str(tmp_path), "mounted": [str(path) for path in paths]})
    assert found.replaced() == []
    (tmp_path / "changed").write_text("y")
    for name in ("replaced", "removed", "folder"):
        path = tmp_path / name
        path.rmdir() if name == "folder" else path.unlink()
    (tmp_path / "folder").mkdir()
    (tmp_path / "replaced").write_text("x")
    (tmp_path / "made").write_text("x")
    assert found.replaced() == [str(path) for path in paths[1:]]
    assert not found.is_broken()


def test_without_a_sandbox_nothing_is_looked_at() -> None:
    found = UnchangedPaths({"root": "", "absent": [], "links": []})
    found.restore()
    assert not found.is_broken()
    assert found.moved == []


@given(st.lists(st.sampled_from([".a", ".a/b", ".a/b/c", "x", "x/.a", ".git", ".git/config"]), max_size=6))
def test_afterwards_none_of_them_is_there_and_everything_else_is(
    tmp_path_factory: pytest.TempPathFactory, made: list[str]
) -> None:
    root = tmp_path_factory.mktemp("project")
    found = kept(root, ".a/b", ".git/config", ".git")
    for name in made:
        path = root / name
        if not any(parent.is_file() for parent in path.parents) and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("fsmonitor = x")
    before = sum(path.is_file() for path in root.rglob("*"))
    found.restore()
    assert not found.is_broken()
    assert not (root / ".a" / "b").exists()
    assert not (root / ".git").exists()
    assert sum(path.is_file() for path in root.rglob("*")) == before


def limits(**given: int) -> dict[str, Any]:
    most = 1 << 50
    return {"memory_bytes": most, "cpu_seconds": most, "processes": most, "disk_bytes": most, **given}


@pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(), reason="this system shows no memory of processes"
)
def test_shared_memory_of_a_process_counts_as_its_memory(tmp_path: Path) -> None:
    with mmap.mmap(-1, 8 * MIB) as shared:
        shared.write(b"x" * (8 * MIB))
        memfd = os.memfd_create("test")
        try:
            os.ftruncate(memfd, 8 * MIB)
            os.posix_fallocate(memfd, 0, 8 * MIB)
            ready, end = os.pipe()
            child = os.fork()
            if child == 0:
                os.read(ready, 1)
                os._exit(0)
            try:
                assert child in descendants(os.getpid())
                assert Usage(limits(memory_bytes=11 * MIB), "").exceeded() == "memory"
                assert Usage(limits(processes=0), "").exceeded() == "processes"
                (tmp_path / "a" / "b").mkdir(parents=True)
                (tmp_path / "a" / "b" / "c").write_bytes(b"x" * MIB)
                assert Usage(limits(disk_bytes=MIB // 2), str(tmp_path)).exceeded() == "disk"
                usage = Usage(limits(), str(tmp_path))
                assert usage.exceeded() is None
                assert not usage.is_due()
            finally:
                os.write(end, b".")
                os.waitpid(child, 0)
                os.close(ready)
                os.close(end)
        finally:
            os.close(memfd)


def test_a_folder_that_may_not_be_written_is_no_shelter() -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        project = Path(place, "p")
        child = os.fork()
        if child == 0:
            try:
                if os.geteuid() == 0:  # which may rename whatever the mode is
                    os.setuid(65534)
                (project / ".config" / "git").mkdir(parents=True)
                (project / ".config").chmod(0o500)
                project.chmod(0o500)
                found = kept(project, ".config/git")
                found.restore()
                os._exit(found.moved != [[".config/git", ".config/git.set-aside"]])
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert [one.name for one in (project / ".config").iterdir()] == ["git.set-aside"]


def test_all_names_may_be_taken(tmp_path: Path) -> None:
    found = kept(tmp_path, ".mcp.json")
    for ending in ("", *(f"-{number}" for number in range(2, 1000))):
        (tmp_path / f".mcp.json.set-aside{ending}").write_text("")
    (tmp_path / ".mcp.json").write_text("x")
    found.restore()
    assert not (tmp_path / ".mcp.json").exists()
    assert (tmp_path / found.moved[0][1]).read_text() == "x"


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_what_another_command_puts_in_its_place_meanwhile_is_neither_waited_for_nor_followed(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, away = tmp_path / "root", tmp_path / "away"
    (root / ".git").mkdir(parents=True)
    (away / "git").mkdir(parents=True)
    found = kept(root, ".git/config", ".config/git")
    if kind == "pipe":
        os.mkfifo(root / ".git" / "config")
        seen = os.lstat

        def as_a_file(path: Any, **options: Any) -> os.stat_result:
            status = seen(path, **options)
            is_pipe = str(path).endswith("config")
            return os.stat_result((0o100600, *status[1:])) if is_pipe else status

        monkeypatch.setattr(os, "lstat", as_a_file)
        assert not found.is_broken()
        return
    (root / ".config").symlink_to(away)
    monkeypatch.setattr(found, "_offending", lambda: iter([(".config/git", None)]))
    found.restore()
    assert [one.name for one in away.iterdir()] == ["git"]
