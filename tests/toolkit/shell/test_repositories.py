"""Repositories of git inside of others, in which ``git status`` of the outer one runs programs as well."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kantan_agents.toolkit.named_files.gitlinks import MOST_LINKS, gitlinks
from kantan_agents.toolkit.shell import shell_tools
from kantan_agents.toolkit.shell.pinned import find_pinned
from tests.toolkit.calls import call, processes_with, until

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.slow]

LINK = "git update-index --add --cacheinfo 160000,$(git -C lib rev-parse HEAD),lib"
INNER = "git init -q lib && git -C lib -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"


async def run(root: Path, command: str) -> str:
    return await call(shell_tools(root, sandbox="required")[0], command=command)


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
    ).stdout


def with_submodule(root: Path) -> None:
    git(root, "init", "-q")
    git(root, "init", "-q", "lib")
    git(root / "lib", "commit", "-q", "--allow-empty", "-m", "x")
    git(root, "add", "lib")


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("way", ["config", "hooks", "file", "split", "twice"])
async def test_a_repository_that_becomes_a_part_runs_no_program(
    tmp_path: Path, way: str, version: int
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    git(root, "init", "-q")
    (root / "a").write_text("x")
    git(root, "add", "a")
    pwn = "git -C lib config core.fsmonitor 'touch /tmp/x'"
    line = {
        "config": f"{INNER} && {LINK} && {pwn}",
        "hooks": f"{INNER} && {LINK} && echo evil > lib/.git/hooks/post-index-change",
        "file": f"{INNER} && {pwn} && {LINK} && mv lib/.git away && echo 'gitdir: ../away' > lib/.git",
        "split": f"{INNER} && {pwn} && {LINK} && git update-index --split-index",
        "twice": f"mkdir o && cd o && git init -q && {INNER} && {pwn} && {LINK} && git -c user.name=a"
        f" -c user.email=a@b commit -qm x && cd .. && {LINK.replace('lib', 'o')}",
    }[way]
    result = await run(root, f"git update-index --index-version {version} && {line}")
    inner = "o/lib" if way == "twice" else "lib"
    assert f"{inner}/.git" in result
    assert "set-aside" in result
    assert "lib" in git(root, "status", "--short") or way == "twice"
    assert not (root / inner / ".git" / "config").exists() or way == "hooks"


async def test_one_that_names_no_program_is_left_and_stays_so(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert "set-aside" not in await run(tmp_path, f"{INNER} && {LINK}")
    before = (tmp_path / "lib" / ".git" / "config").read_text()
    assert "set-aside" not in await run(tmp_path, "git -C lib config core.fsmonitor x")
    assert (tmp_path / "lib" / ".git" / "config").read_text() == before
    assert "Exit code 0." in await run(tmp_path, "cd lib && echo a > a && git add a && git status")


async def test_a_command_in_the_background_does_not_free_what_has_become_a_part_since(
    tmp_path: Path, mark: str
) -> None:
    git(tmp_path, "init", "-q")
    bash, *_ = shell_tools(tmp_path, sandbox="required")
    await call(bash, command=f"sleep {mark}", run_in_background=True)
    await until(lambda: processes_with(mark))
    assert "set-aside" not in await call(bash, command=f"{INNER} && {LINK}")
    await call(bash, command="git -C lib config core.fsmonitor x")
    assert not (tmp_path / "lib" / ".git").exists()


async def test_a_submodule_is_read_only_whatever_a_command_puts_beside_it(tmp_path: Path) -> None:
    with_submodule(tmp_path)
    (tmp_path / ".gitmodules").write_text('[submodule "lib"]\n\tpath = lib\n\turl = ./lib\n')
    git(tmp_path, "submodule", "absorbgitdirs")
    real = tmp_path / ".git" / "modules" / "lib" / "config"
    before = real.read_text()
    await run(tmp_path, "cd .git/modules && touch HEAD && mkdir objects refs && mkdir -p x/{1..600}")
    await run(tmp_path, "echo '[core] fsmonitor = x' > .git/modules/lib/config")
    await run(tmp_path, "rm lib/.git; echo 'gitdir: x' > lib/.git")
    assert real.read_text() == before
    assert git(tmp_path / "lib", "log", "--format=%s") == "x\n"


@pytest.mark.parametrize("led", [".bare", "../root/.bare"])
async def test_where_the_file_of_a_repository_leads_is_read_only(tmp_path: Path, led: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    git(root, "init", "-q", "--bare", ".bare")
    (root / ".git").write_text(f"gitdir: {led}\n")
    before = (root / ".bare" / "config").read_text()
    await run(root, "echo '[core] fsmonitor = x' >> .bare/config; echo x > .bare/hooks/post-checkout")
    assert (root / ".bare" / "config").read_text() == before
    assert not (root / ".bare" / "hooks" / "post-checkout").exists()


@pytest.mark.parametrize("led", ["", "../../../other/.git"])
async def test_another_worktree_is_a_part_of_the_repository(tmp_path: Path, led: str) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "x")
    git(tmp_path, "worktree", "add", "-q", "other")
    if led:  # as newer versions of git write it
        (tmp_path / ".git" / "worktrees" / "other" / "gitdir").write_text(f"{led}\n")
    before = (tmp_path / "other" / ".git").read_text()
    await run(tmp_path, "rm -f .git/worktrees/other/gitdir; echo x > .git/worktrees/other/gitdir")
    await run(tmp_path, "rm -f other/.git; echo 'gitdir: ../evil' > other/.git")
    assert (tmp_path / "other" / ".git").read_text() == before
    assert "other/lib/.git is now" in await run(
        tmp_path, f"cd other && {INNER} && {LINK} && git -C lib config core.fsmonitor x"
    )


async def test_what_an_included_file_names_is_read_only(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "include.path", "../shared.gitconfig")
    (tmp_path / "shared.gitconfig").write_text(
        "[core]\n\thooksPath = my-hooks\n\tfsmonitor = tools/watch.sh\n"
    )
    for name in ("my-hooks", "tools"):
        (tmp_path / name).mkdir()
    (tmp_path / "tools" / "watch.sh").write_text("before\n")
    await run(tmp_path, "echo after > tools/watch.sh; echo x > my-hooks/pre-commit")
    assert (tmp_path / "tools" / "watch.sh").read_text() == "before\n"
    assert not (tmp_path / "my-hooks" / "pre-commit").exists()


def test_links_are_found_in_an_index_of_each_version(tmp_path: Path) -> None:
    with_submodule(tmp_path)
    for name in ("a", "lib2/deep/b", "z" * 200):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    git(tmp_path, "add", "-A")
    for version in ("2", "4"):
        git(tmp_path, "update-index", "--index-version", version)
        assert "lib" in (gitlinks(str(tmp_path / ".git" / "index")) or ())
    git(tmp_path, "add", "-N", "--", ".")
    index = (tmp_path / ".git" / "index").read_bytes()
    for length in range(0, len(index), 7):
        (tmp_path / "damaged").write_bytes(index[:length])
        assert gitlinks(str(tmp_path / "damaged")) is not None
    for kind in ("missing", "."):
        assert gitlinks(str(tmp_path / kind)) == []
    os.mkfifo(tmp_path / "pipe")
    assert gitlinks(str(tmp_path / "pipe")) == []


def test_paths_that_leave_the_repository_are_not_looked_at_and_too_many_are_none(tmp_path: Path) -> None:
    def entry(name: str) -> bytes:
        raw = (
            b"\0" * 24
            + b"\0\0\xe0\0"
            + b"\0" * 32
            + min(len(name), 4095).to_bytes(2, "big")
            + name.encode()
            + b"\0"
        )
        return raw + b"\0" * (-len(raw) % 8)

    def index(*names: str) -> str:
        data = b"DIRC" + (2).to_bytes(4, "big") + len(names).to_bytes(4, "big") + b"".join(map(entry, names))
        (tmp_path / "index").write_bytes(data)
        return str(tmp_path / "index")

    found = gitlinks(index("a", "../b", "/c", "d/../../e", "f/.git/g", "h/i")) or []
    assert {"a", "h/i"} <= set(found)
    assert not [name for name in found if name.startswith(("/", "..")) or "/../" in name or ".git" in name]
    assert gitlinks(index(*map(str, range(MOST_LINKS // 2)))) is not None
    assert gitlinks(index(*map(str, range(MOST_LINKS + 1)))) is None
    assert gitlinks(index("x" * 70_000)) is None


def test_what_is_known_of_a_folder_without_a_repository(tmp_path: Path) -> None:
    assert find_pinned(str(tmp_path)).indexes == ((".", ".git/index"),)
