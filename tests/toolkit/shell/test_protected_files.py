"""What a command in the sandbox cannot change: whatever is executed outside of it, and what grants rights.

Each test runs a real command in a real bubblewrap.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from agents import FunctionTool
from agents.tool_context import ToolContext
from anyio import to_thread

from kantan_agents import SQLiteRecorder
from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.toolkit import protected, toolkit
from kantan_agents.toolkit.protected import why_protected
from kantan_agents.toolkit.shell import ShellLimits, pinned, shell_tools
from kantan_agents.toolkit.shell.pinned import find_pinned, runs_from
from kantan_agents.toolkit.shell.sandbox import find_sandbox
from kantan_agents.toolkit.shell.supervised import end_writers, pinned_by_running
from kantan_agents.traces.database_url import as_url
from tests.toolkit.calls import body, call, processes_with, until

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.slow]

MIB = 1024 * 1024


async def run(root: Path, command: str, **options: Any) -> str:
    return await call(shell_tools(root, sandbox="required", **options)[0], command=command)


def files_of(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("before\n")


async def end_of(output: FunctionTool, begun: str) -> str:
    """Wait for the end of a command in the background, and return what ``BashOutput`` says of it."""
    shell = begun.split("background as ")[1].partition(",")[0]
    with anyio.fail_after(120):
        while "Running." in (said := await call(output, bash_id=shell)):  # noqa: ASYNC110 - it reads what is new
            await anyio.sleep(0.01)
    return said


def replace_by_link(folder: Path, target: Path) -> None:
    folder.rename(target / "moved")
    folder.symlink_to(target)


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
    ).stdout


@pytest.mark.parametrize(
    "name",
    [
        *(".git/config", ".git/hooks/pre-commit", ".git/info/attributes", ".git/modules/lib/config"),
        *(".claude/agents/a.md", ".claude/settings.json", ".kode/agents/a.md", ".codex/config.toml"),
        *(
            ".agents/skills/x/SKILL.md",
            ".mcp.json",
            "kantan-agents.toml",
            ".venv/bin/python",
            ".bashrc",
            ".envrc",
        ),
        *("traces.sqlite3", "traces.sqlite3-wal", "sitecustomize.py", ".vscode/tasks.json", ".npmrc"),
    ],
)
async def test_a_protected_file_cannot_be_changed_whichever_way(root: Path, name: str) -> None:
    files_of(root, ".git/HEAD", ".git/objects/", ".git/refs/", ".git/modules/lib/HEAD", name)
    above = name.partition("/")[0]
    ways = [
        f"echo after > {name}",
        f"echo after > x && mv -f x {name}",
        f"ln {name} y && echo after > y",
        f"rm -f {name}",
        f"rm -rf {above}",
        f"mv {above} z",
        f"chmod 777 {name}",
        f"mkdir -p m && mount --bind m {above}",
    ]
    result = await run(root, "; ".join(f"({way}) 2>&1 && echo DONE" for way in ways) + "; true")
    assert "DONE" not in result
    assert (root / name).read_text() == "before\n"
    assert not (root / "z").exists()


@pytest.mark.parametrize(
    "name",
    [".mcp.json", ".claude/agents/a.md", ".git/commondir", "kantan-agents.toml", ".envrc", ".venv/bin/x"],
)
@pytest.mark.parametrize("way", ["echo made > {}", "echo made > tmp; ln -s $PWD/tmp {}"])
async def test_a_protected_file_that_did_not_exist_is_set_aside(root: Path, name: str, way: str) -> None:
    files_of(root, ".git/HEAD", ".git/objects/", ".git/refs/", "src/a.py")
    result = await run(root, f"echo b > src/b.py; mkdir -p $(dirname {name}); {way.format(name)}")
    top = name if name.startswith(".git/") else name.partition("/")[0]
    left = {path.relative_to(root).as_posix() for path in (root / top).parent.iterdir()}
    assert top not in left
    assert f"{top}.set-aside" in left
    assert f"{top} is now {top}.set-aside" in result
    assert (root / "src" / "b.py").exists()


async def test_a_command_that_has_made_a_protected_file_is_ended_also_in_the_background(
    root: Path, mark: str
) -> None:
    bash, output, _ = shell_tools(root, sandbox="required")
    begun = await call(bash, command=f"echo x > .mcp.json; sleep {mark}", run_in_background=True)
    shell = begun.split("background as ")[1].partition(",")[0]
    await until((root / ".mcp.json.set-aside").exists)
    said = ""
    with anyio.fail_after(120):
        while "protected file" not in said:
            await anyio.sleep(0.01)
            said = await call(output, bash_id=shell)
    assert ".mcp.json is now .mcp.json.set-aside" in said
    assert not (root / ".mcp.json").exists()


async def test_folders_down_to_the_working_directory_are_protected_too(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_of(root, "part/app/.claude/agents/a.md", "other/.claude/agents/a.md")
    monkeypatch.chdir(root / "part" / "app")
    result = await run(
        root,
        "echo x > part/app/.claude/agents/a.md; mv part x; echo x > part/.mcp.json; echo x > other/.mcp.json",
    )
    assert (root / "part" / "app" / ".claude" / "agents" / "a.md").read_text() == "before\n"
    assert "part/.mcp.json is now part/.mcp.json.set-aside" in result


async def test_a_file_that_a_person_agrees_to_is_kept_once_the_commands_have_ended(
    root: Path, mark: str
) -> None:
    bash, output, _ = shell_tools(root, sandbox="required")
    begun = await call(bash, command=f"sleep {mark}", run_in_background=True)
    await until(lambda: processes_with(mark))
    await to_thread.run_sync(end_writers, f"{root}/src/a.py")
    assert processes_with(mark)
    await to_thread.run_sync(end_writers, f"{root}/.claude/agents/a.md")
    assert processes_with(mark) == []
    files_of(root, ".claude/agents/a.md")
    assert "is now" not in await end_of(output, begun)
    assert (root / ".claude" / "agents" / "a.md").exists()


@pytest.mark.parametrize("path", [".mcp.json", "server.py"])
async def test_a_running_command_cannot_write_what_a_tool_replaces(root: Path, path: str) -> None:
    (root / "server.py").write_text("before\n")
    (root / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "python", "args": ["server.py"]}}}')
    write = next(tool for tool in toolkit(root, write=True) if tool.name == "Write")
    text = json.dumps({"file_path": path, "content": "approved"})
    context: Any = ToolContext(context=None, tool_name="Write", tool_call_id="1", tool_arguments=text)
    async with anyio.create_task_group() as group:
        command = f"touch begun; until grep -q approved {path}; do sleep 0.01; done; echo evil > {path}"
        group.start_soon(run, root, command)
        await until((root / "begun").exists)
        assert "Replaced" in str(await write.on_invoke_tool(context, text))
    assert (root / path).read_text() == "approved"


async def test_a_link_on_the_way_out_is_set_aside_and_nothing_outside_is_renamed(
    root: Path, tmp_path: Path
) -> None:
    files_of(tmp_path, "home/git/config")
    result = await run(root, f"ln -s {tmp_path}/home .config")
    assert ".config is now .config.set-aside" in result
    assert (tmp_path / "home" / "git" / "config").read_text() == "before\n"


async def test_a_link_in_the_place_of_a_protected_file_is_put_back(root: Path, tmp_path: Path) -> None:
    files_of(tmp_path, "agents/a.md")
    (root / ".claude").symlink_to(tmp_path / "agents")
    result = await run(root, "rm .claude; mkdir .claude; echo evil > .claude/a.md")
    # The second, if the command was ended before it made the folder.
    assert ".claude is now .claude.set-aside" in result or ".claude is a link again" in result
    assert (root / ".claude").readlink() == tmp_path / "agents"
    assert (tmp_path / "agents" / "a.md").read_text() == "before\n"


async def test_what_a_protected_link_leads_to_is_read_only(root: Path) -> None:
    files_of(root, "shared/claude/agents/a.md")
    (root / ".claude").symlink_to("shared/claude")
    await run(root, "echo evil > shared/claude/agents/a.md; mv shared x; rm -rf shared")
    assert (root / "shared" / "claude" / "agents" / "a.md").read_text() == "before\n"


async def test_git_works_in_the_sandbox_but_its_configuration_is_read_only(root: Path) -> None:
    git(root, "init", "-q")
    git(root, "config", "user.email", "a@b")
    git(root, "config", "user.name", "a")
    before = (root / ".git" / "config").read_text()
    result = await run(
        root,
        "set -e; echo a > a; git add a; git commit -qm one; git checkout -qb other; git stash list;"
        " echo b >> a; git commit -qam two; git gc -q; git log --format=%s; git status --short",
    )
    assert result.startswith("Exit code 0.")
    assert body(result).split()[:2] == ["two", "one"]
    assert "Exit code 0." not in await run(root, "git config core.fsmonitor 'touch /tmp/x'")
    assert (root / ".git" / "config").read_text() == before
    assert git(root, "log", "--format=%s").split() == ["two", "one"]


async def test_a_new_repository_is_left_and_one_that_runs_programs_is_not(root: Path) -> None:
    result = await run(root, "git init -q . && git config user.name a && git config user.email a@b")
    assert "is now" not in result
    assert (root / ".git" / "config").exists()
    shutil.rmtree(root / ".git")
    result = await run(root, "git init -q . && git config core.fsmonitor 'touch pwned'")
    assert ".git/config is now .git/config.set-aside" in result
    shutil.rmtree(root / ".git")
    result = await run(root, "mkdir away && git init -q --separate-git-dir away/x .")
    assert ".git is now .git.set-aside" in result
    result = await run(root, "git init -q --bare")
    assert "HEAD is now HEAD.set-aside" in result


async def test_files_that_the_configuration_names_are_read_only(root: Path) -> None:
    git(root, "init", "-q")
    git(root, "config", "core.hooksPath", "tools/hooks")
    git(root, "config", "include.path", "../more.gitconfig")
    git(root, "config", "filter.f.clean", "sh tools/clean.sh %f")
    files_of(root, "tools/hooks/pre-commit", "more.gitconfig", "tools/clean.sh", "tools/free.txt", "data.db")
    files_of(root, "server/main.py", "pkg/serve/__init__.py", "pkg/serve/part.py", "node_modules/a/index.js")
    (root / ".mcp.json").write_text(
        '{"mcpServers": {"a": {"command": "python3", "args": ["server/main.py", "data.db"]},'
        ' "b": {"command": "python3", "args": ["-m", "pkg.serve"]}, "c": {"command": "npx", "args": ["a"]}}}'
    )
    kept = [
        *("tools/hooks/pre-commit", "more.gitconfig", "tools/clean.sh", "server/main.py"),
        *("pkg/serve/part.py", "node_modules/a/index.js"),
    ]
    free = ["tools/free.txt", "data.db"]
    await run(root, "; ".join(f"echo after > {name}" for name in [*kept, *free]))
    assert [name for name in kept if (root / name).read_text() != "before\n"] == []
    assert [name for name in free if (root / name).read_text() != "after\n"] == []


async def test_a_path_can_be_made_writable_but_not_what_this_process_executes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_of(root, ".venv/bin/python", ".claude/agents/a.md", "env/bin/python")
    monkeypatch.setattr(pinned, "executed_here", lambda: (str(root / "env"),))
    command = "; ".join(
        f"echo after > {name}" for name in (".venv/bin/python", ".claude/x", "env/bin/python")
    )
    await run(root, command, writable=[".venv", root / ".claude", "env"])
    assert (root / ".venv" / "bin" / "python").read_text() == "after\n"
    assert (root / ".claude" / "x").read_text() == "after\n"
    assert (root / "env" / "bin" / "python").read_text() == "before\n"


async def test_the_database_that_records_is_read_only_and_goes_on(root: Path) -> None:
    recorder = SQLiteRecorder(root / "own.sqlite3")
    try:
        result = await run(root, "for f in own.sqlite3*; do rm -f $f; echo x > $f; mv $f y; done; ls")
        assert {*body(result).split()} >= {"own.sqlite3", "own.sqlite3-wal", "own.sqlite3-shm"}
        assert "y" not in body(result).split()
        assert recorder.force_flush()
        assert recorder.stats().failed == 0
    finally:
        recorder.shutdown()


async def test_a_database_in_a_server_protects_no_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = SimpleNamespace(path=as_url("postgresql://user@host/traces"))
    monkeypatch.setattr(pinned, "recorders", lambda: [recorder])
    assert body(await run(root, "echo works")) == "works\n"


async def test_folders_of_path_in_the_project_are_read_only(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_of(root, "tools/bin/git", "bin/a")
    monkeypatch.setenv("PATH", f"{root}/tools/bin:{root}/missing/bin:{os.environ['PATH']}")
    result = await run(root, "echo x > tools/bin/npx; mv tools t; echo x > bin/a; mkdir -p missing/bin")
    assert [one.name for one in (root / "tools" / "bin").iterdir()] == ["git"]
    assert (root / "bin" / "a").read_text() == "x\n"
    assert "missing/bin is now missing/bin.set-aside" in result


async def test_a_program_in_the_project_is_not_taken_for_bubblewrap(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_of(root, "bin/bwrap")
    (root / "bin" / "bwrap").write_text(f"#!/bin/sh\ntouch {root}/ran\n")
    (root / "bin" / "bwrap").chmod(0o755)
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", f"{root}/bin:bin::{os.environ['PATH']}")
    assert body(await run(root, "echo inside")) == "inside\n"
    assert not (root / "ran").exists()


async def test_libraries_that_the_environment_names_are_loaded_in_the_sandbox_only(root: Path) -> None:
    variables = {"LD_LIBRARY_PATH": f"{root}/lib", "LOCPATH": "x", "A": "b"}
    result = await run(root, "cat /proc/1/environ | tr '\\0' '\\n'; echo; env", env=variables)
    outside, inside = body(result).split("\n\n")
    assert "LD_LIBRARY_PATH" not in outside
    assert "LOCPATH" not in outside
    assert "A=b" in outside
    assert f"LD_LIBRARY_PATH={root}/lib" in inside.splitlines()


async def test_the_directory_for_temporary_files_is_not_in_the_project(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(root / "tmp"))
    bash, *_ = shell_tools(root, sandbox="required")
    assert body(await call(bash, command="echo a > /tmp/a; cat /tmp/a; ls tmp")) == "a\n"


async def test_a_directory_that_became_a_link_is_not_used(root: Path, tmp_path: Path) -> None:
    bash, *_ = shell_tools(root, sandbox="required")
    replace_by_link(root, tmp_path)
    assert "[E167]" in await call(bash, command="ls")


@pytest.mark.parametrize("how", ["file", "folder"])
async def test_a_command_is_ended_when_what_it_may_not_write_is_replaced(
    root: Path, mark: str, how: str
) -> None:
    git(root, "init", "-q")
    files_of(root, ".venv/bin/python")
    bash, output, _ = shell_tools(root, sandbox="required")
    begun = await call(bash, command=f"touch begun; sleep {mark}", run_in_background=True)
    await until((root / "begun").exists)
    if how == "file":
        git(root, "config", "user.name", "a")
    else:
        (root / ".venv").rename(root / ".venv-old")
    await until(lambda: not processes_with(mark))
    said = await end_of(output, begun)
    assert "The command was ended: a protected file that it could not write was replaced meanwhile." in said
    replaced = root / (".git/config" if how == "file" else ".venv")
    assert f"because the command could write there for a moment: {replaced}." in said


async def test_a_command_ends_before_an_approved_call_replaces_a_protected_file(
    root: Path, mark: str
) -> None:
    files_of(root, ".mcp.json", ".claude/agents/a.md")
    bash, output, _ = shell_tools(root, sandbox="required")
    begun = await call(bash, command=f"sleep {mark}", run_in_background=True)
    await until(lambda: processes_with(mark))
    await to_thread.run_sync(end_writers, f"{root}/.claude/agents/a.md")  # its folder stays mounted
    assert processes_with(mark)
    await to_thread.run_sync(end_writers, f"{root}/.mcp.json")
    assert processes_with(mark) == []
    assert "ended: a protected file is changed, which it could write" in await end_of(output, begun)


async def test_what_a_running_command_may_replace_is_not_mounted_for_the_next(root: Path, mark: str) -> None:
    git(root, "init", "-q")
    git(root, "config", "filter.f.clean", "sh tools/clean.sh %f")
    files_of(root, ".claude/agents/a.md")
    bash, *_ = shell_tools(root, sandbox="required")
    await call(bash, command=f"sleep {mark}", run_in_background=True)
    await until(lambda: processes_with(mark))
    files_of(root, "tools/clean.sh")
    (running,) = pinned_by_running(str(root))
    found = find_pinned(str(root))
    assert f"{root}/tools" in found.folders
    assert f"{root}/tools" not in found.beside(running).folders
    assert f"{root}/tools/clean.sh" not in found.beside(running).read_only
    assert f"{root}/.claude" in found.beside(running).read_only
    result = await call(bash, command="echo x > .claude/x; echo y > tools/clean.sh")
    assert "Read-only" in result
    assert (root / "tools" / "clean.sh").read_text() == "y\n"


async def test_no_command_begins_in_a_folder_that_a_running_one_may_replace(root: Path, mark: str) -> None:
    files_of(root, "inner/a")
    outer, *_ = shell_tools(root, sandbox="required")
    await call(outer, command=f"sleep {mark}", run_in_background=True)
    await until(lambda: processes_with(mark))
    assert "[E167]" in await run(root / "inner", "true")
    assert "Exit code 0." in await run(root, "true")


ESCAPE = """
import asyncio, json, os, sys
from kantan_agents.toolkit.shell import shell_tools
bash = shell_tools(os.getcwd(), sandbox="required")[0]
for command in sys.argv[1:]:
    print(asyncio.run(bash.on_invoke_tool(None, json.dumps({"command": command}))))
"""


@pytest.mark.parametrize("layout", ["environment", "root", "link"])
def test_the_sandbox_is_not_left_through_what_the_library_runs_from(
    root: Path, tmp_path: Path, layout: str
) -> None:
    packages = next(place for place in sys.path if Path(place, "anyio").is_dir())
    place = {"environment": root / ".venv", "root": root, "link": tmp_path / "elsewhere"}[layout]
    (place / "bin").mkdir(parents=True, exist_ok=True)
    (place / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    (place / "pyvenv.cfg").write_text(f"home = {Path(os.path.realpath(sys.executable)).parent}\n")
    site = place / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    site.mkdir(parents=True)
    (site / "others.pth").write_text(f"{packages}\n")
    shutil.copytree(Path(protected.__file__).parents[1], site / "kantan_agents")
    environment = place
    if layout == "link":
        environment = root / ".venv"
        environment.symlink_to(place)
    outside = tmp_path / "escaped"
    evil = f"#!/bin/sh\\ntouch {outside}\\n"
    library = os.path.relpath(site / "kantan_agents", root)
    python = os.path.relpath(environment / "bin" / "python", root)
    ways = [
        f"rm -f {python}; printf '{evil}' > {python}; chmod +x {python}",
        f"mv $(dirname {python})/.. gone; mkdir -p $(dirname {python}); printf '{evil}' > {python}",
        f'echo \'open("{outside}", "w")\' | tee -a {library}/toolkit/shell/*.py',
        f"echo 'import os; os.mkdir(\"{outside}\")' | tee {library}/../x.pth {library}/../sitecustomize.py",
        f"echo 'import os; os.mkdir(\"{outside}\")' | tee json.py ctypes.py resource.py attr.py",
        "rm -rf .venv bin lib pyvenv.cfg",
        "true",
    ]
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(ESCAPE))
    interpreter = str(environment / "bin" / "python")
    # The second starts with what the first has left.
    again = [interpreter, "-I", "-c", "import kantan_agents.tool_rules.worker"]
    for command in ([interpreter, str(script), *ways], again):
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("Sandbox: bubblewrap") in (len(ways), 0)
        assert not outside.exists(), done.stdout
    if layout == "link":
        assert environment.readlink() == place


def test_a_project_from_which_the_process_runs_is_read_only() -> None:
    library = str(Path(protected.__file__).parents[1])
    assert runs_from(library)
    assert runs_from(f"{library}/toolkit")
    assert not runs_from(str(Path(library).parent))
    found = find_sandbox(library, "/bin/sh", writes=True, network=False, readable=())
    assert not isinstance(found, str)
    assert not found.writes


def test_folders_that_hold_something_read_only_cannot_be_moved(root: Path) -> None:
    files_of(root, ".git/modules/a/b/HEAD", ".git/modules/a/b/config", ".venv/bin/python")
    found = find_pinned(str(root))
    assert f"{root}/.git/modules/a/b" in found.folders
    assert f"{root}/.git/modules/a/b/config" in found.read_only
    assert f"{root}/.venv" in found.read_only
    assert not any(path.startswith(f"{root}/.venv") for path in found.folders)


SHARED = {
    "mapped": "import mmap, time; m = mmap.mmap(-1, 300 << 20)\nfor i in range(0, len(m), 4096): m[i] = 1\n",
    "memfd": "import os, time; f = os.memfd_create('x')\nfor i in range(300): os.write(f, bytes(1 << 20))\n",
    "file": "f = open('/dev/shm/x', 'wb', 0)\nimport time\nfor i in range(300): f.write(b'x' * (1 << 20))\n",
}


@pytest.mark.parametrize("kind", SHARED)
async def test_shared_memory_and_files_in_memory_are_limited(root: Path, kind: str, mark: str) -> None:
    (root / "fill.py").write_text(f"{SHARED[kind]}time.sleep({mark})\n")
    limits = ShellLimits(memory_bytes=100 * MIB)
    result = await run(root, f"{sys.executable} fill.py", limits=limits)
    assert "it used more than 100 MiB of memory" in result or "No space left on device" in result


def test_a_bubblewrap_that_bounds_no_memory_is_used_all_the_same(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_of(tmp_path, "old/bwrap")
    real = shutil.which("bwrap")
    script = f'#!/bin/sh\ncase "$*" in *--size*) exit 1;; esac\nexec {real} "$@"\n'
    (tmp_path / "old" / "bwrap").write_text(script)
    (tmp_path / "old" / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/old:{os.environ['PATH']}")
    options: Any = {"writes": True, "network": False, "readable": (), "shared_bytes": MIB}
    found = find_sandbox(str(root), "/bin/sh", **options)
    assert not isinstance(found, str)
    assert found.shared == ()


@pytest.mark.parametrize("place", ["off", "required"])
async def test_a_file_cannot_be_larger_than_the_limit(root: Path, place: Any) -> None:
    limits = ShellLimits(disk_bytes=MIB)
    bash = shell_tools(root, sandbox=place, limits=limits)[0]
    result = await call(bash, command="exec dd if=/dev/zero of=big bs=64K count=100")
    assert "it wrote more than 1 MiB to disks" in result
    assert (root / "big").stat().st_size <= MIB


async def test_many_files_together_are_limited(root: Path, mark: str) -> None:
    limits = ShellLimits(disk_bytes=20 * MIB)
    fill = "for i in $(seq 40); do dd if=/dev/zero of=$TMPDIR/$i bs=1M count=1 status=none; done"
    result = await run(root, f"{fill}; sleep {mark}", limits=limits)
    assert "it wrote more than 20 MiB to disks" in result


async def test_the_device_directory_holds_no_files(root: Path) -> None:
    result = await run(root, "echo a > /dev/x; echo b > /dev/null && echo c > /dev/shm/x && cat /dev/shm/x")
    assert "/dev/x: Read-only file system" in result
    assert result.endswith("c\n")


@pytest.mark.parametrize("options", [{}, {"write": False}, {"writable": [".local"]}], ids=str)
async def test_the_librarys_own_data_is_hidden_from_commands(
    root: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setenv("HOME", str(root))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    own = ".local/share/kantan-agents"
    files_of(root, f"{own}/undo/snapshots.sqlite3")
    listed = await run(root, f"ls -A {own}; cat {own}/undo/snapshots.sqlite3", **options)
    assert body(listed).splitlines()[:1] == [f"cat: {own}/undo/snapshots.sqlite3: No such file or directory"]
    for command in (f"mkdir {own}/undo", f"mv {own} x", "mv .local x", "mv .local/share x", f"rm -r {own}"):
        assert "Exit code 0" not in await run(root, command, **options), command
    assert (root / own / "undo/snapshots.sqlite3").read_text() == "before\n"


async def test_the_librarys_own_data_is_hidden_in_what_commands_may_read(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    files_of(tmp_path / "data", "kantan-agents/undo/snapshots.sqlite3", "other")
    shown = await run(root, f"ls -R {tmp_path}/data", readable=[tmp_path / "data"])
    assert "other" in shown and "snapshots" not in shown


@pytest.mark.parametrize(
    ("entry", "kept"),
    [
        ({"command": "python3", "args": ["my server.py"]}, "my server.py"),
        ({"command": "python3", "args": ["main.py"], "cwd": "tools"}, "tools/main.py"),
        ({"command": "python3", "args": ["${SERVER_FILE:-tools/main.py}"]}, "tools/main.py"),
        ({"command": "uv", "args": ["run", "--directory", "tools", "main.py"]}, "tools/main.py"),
        ({"command": "python3", "args": ["tools"]}, "tools/__main__.py"),
        ({"command": "sh", "args": ["-c", "cd 'tools' && exec ./run.sh"]}, "tools/run.sh"),
        ({"command": "python3", "args": ["-m", "serve"], "env": {"PYTHONPATH": "tools"}}, "tools/serve.py"),
        ({"command": "npm", "args": ["start"], "cwd": "tools"}, "tools/package.json"),
    ],
)
async def test_a_program_of_a_server_is_read_only_however_it_is_named(
    root: Path, entry: dict[str, Any], kept: str
) -> None:
    files_of(root, kept)
    # As a program reads it: a letter may be written by its code.
    text = json.dumps({"mcpServers": {"a": entry}}).replace("server.py", "\\u0073erver.py")
    (root / ".mcp.json").write_text(text)
    await run(root, f"echo after > '{kept}'")
    assert (root / kept).read_text() == "before\n"
    (tool,) = (one for one in toolkit(root, write=True) if one.name == "Write")
    assert why_protected(str(root), tuple(kept.split("/"))) == protected.SERVERS
    assert tool.needs_approval


async def test_a_program_of_a_server_that_does_not_exist_is_set_aside(root: Path) -> None:
    servers = {"a": {"command": "node", "args": ["dist/index.js"]}}
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    assert "dist/index.js is now" in await run(root, "mkdir dist && echo evil > dist/index.js")
    assert why_protected(str(root), ("dist", "index.js")) == protected.SERVERS


def test_a_configuration_that_names_very_much_costs_little(root: Path) -> None:
    names = [f"d{number}" for number in range(300)]
    files_of(root, *(f"{name}/" for name in names), "d299/main.py")
    servers = {"a": {"command": "python3", "args": [*names, *["x y"] * 20_000, "main.py"]}}
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    assert str(root / "d299") in find_pinned(str(root)).read_only


async def test_what_git_runs_asks_also_in_the_tools_for_files(root: Path) -> None:
    git(root, "init", "-q")
    git(root, "config", "core.hooksPath", "tools/hooks")
    files_of(root, "tools/hooks/pre-commit", "tools/free.txt")
    for name, why in (("tools/hooks/pre-push", protected.GIT), ("tools/free.txt", None)):
        assert why_protected(str(root), tuple(name.split("/"))) == why


async def test_the_database_of_durable_runs_is_read_only(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protected, "_also", {})
    database = RunDatabase(f"sqlite:///{root / 'runs.sqlite3'}")
    database.open()
    try:
        before = (root / "runs.sqlite3").read_bytes()
        await run(root, "for f in runs.sqlite3*; do echo x > $f; done; rm -f runs.sqlite3")
        assert (root / "runs.sqlite3").read_bytes() == before
        assert why_protected(str(root), ("runs.sqlite3-wal",)) == protected.TRACES
    finally:
        database.close()


async def test_a_relative_folder_of_path_is_read_only(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files_of(root, "node_modules/.bin/npx")
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", f".:./node_modules/.bin::{os.environ['PATH']}")
    await run(root, "echo after > node_modules/.bin/npx; echo x > new")
    assert (root / "node_modules/.bin/npx").read_text() == "before\n"
    assert (root / "new").exists()
    assert why_protected(str(root), ("node_modules", ".bin", "x")) is not None
