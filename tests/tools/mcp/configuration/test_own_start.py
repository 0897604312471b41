"""A server that the user has configured never starts a program of the folder that the user works in."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import AgentDefinition, configured_servers
from kantan_agents.tools.mcp.configuration.agent_file import source_of
from kantan_agents.tools.mcp.configuration.own_start import OwnStart, project_folders
from tests.tools.mcp.configuration.conftest import Project


def program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def own(user: Path, **server: Any) -> None:
    user.mkdir(exist_ok=True)
    (user / ".mcp.json").write_text(json.dumps({"mcpServers": {"own": server}}))


def process_of(server: Any) -> Any:
    """Return the object that starts the process of a configured server."""
    return getattr(server, "wrapped_server", server)


@pytest.mark.slow  # starts a process
async def test_a_module_of_the_project_is_not_the_one_that_the_users_own_server_names(
    project: Project, user: Path
) -> None:
    mark = project.folder / "executed"
    (project.folder / "clock_server.py").write_text(f"open({str(mark)!r}, 'w')")
    own(user, command="python3", args=["-m", "clock_server"])
    (server,) = configured_servers()
    with pytest.raises(ConnectionError):
        await server.connect()  # type: ignore[no-untyped-call]
    assert not mark.exists()


def test_an_own_server_starts_in_the_folder_of_its_file_and_a_projects_in_the_project(
    project: Project, user: Path
) -> None:
    own(user, command="npx", args=["-y", "files"])
    project.servers["theirs"] = {"command": "npx"}
    project.write()
    ours, theirs = (process_of(one) for one in configured_servers(trusted=True))
    assert ours.params.cwd == os.path.realpath(user)
    assert theirs.params.cwd == str(project.folder)
    assert theirs.own_start is None


@pytest.mark.parametrize(
    "entry",
    [
        "",
        ".",
        "bin",
        "{project}",
        "{project}/node_modules/.bin",
        "{project}/.venv/bin/",
        "{link}/bin",
        "{up}",
    ],
)
def test_no_entry_of_the_path_leads_into_the_project(
    entry: str, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {
        "project": str(project.folder),
        "link": str(tmp_path / "link"),
        "up": str(project.folder / "sub" / ".."),
    }
    (tmp_path / "link").symlink_to(project.folder)
    good = program(tmp_path / "bin", "npx")
    for folder in ("bin", "node_modules/.bin", ".venv/bin", "."):
        program(project.folder / folder, "npx")
    monkeypatch.setenv("PATH", os.pathsep.join([entry.format(**places), str(good.parent)]))
    start = OwnStart.of({}, {})
    assert start.env == {"PATH": str(good.parent)}
    assert start.program("npx") == str(good)


def test_from_a_folder_of_a_repository_no_other_folder_of_it_is_used(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.folder / "sub").mkdir()
    monkeypatch.chdir(project.folder / "sub")
    monkeypatch.setenv("PATH", str(program(project.folder / "bin", "npx").parent))
    assert OwnStart.of({}, {}).env == {"PATH": ""}


def test_what_the_user_wrote_stays_and_what_a_reference_brings_does_not(project: Project) -> None:
    inside, outside = str(project.folder / "lib"), "/opt/lib"
    written = {"PATH": inside, "NODE_PATH": "${NODE_PATH}", "PYTHONPATH": inside, "NOTE": "${NOTE}"}
    joined = os.pathsep.join(["", inside, outside])
    expanded = {"PATH": inside, "NODE_PATH": joined, "PYTHONPATH": inside, "NOTE": joined}
    assert OwnStart.of(written, expanded).env == {**expanded, "NODE_PATH": outside}


def test_a_home_that_is_a_repository_is_no_project(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project.folder))
    monkeypatch.setenv("USERPROFILE", str(project.folder))
    assert project_folders() == ()
    (project.folder / "sub").mkdir()
    monkeypatch.chdir(project.folder / "sub")
    assert project_folders() == (project.folder / "sub",)
    found = program(project.folder / "bin", "npx")
    monkeypatch.setenv("PATH", str(found.parent))
    assert OwnStart.of({}, {}).program("npx") == str(found)


async def test_a_program_that_only_the_project_has_is_an_error_that_says_so(
    project: Project, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = program(project.folder / ".venv" / "bin", "uvx")
    monkeypatch.setenv("PATH", str(theirs.parent))
    own(user, command="uvx", args=["clock"])
    (server,) = configured_servers()
    with pytest.raises(FileNotFoundError, match="write the full path of the program") as raised:
        await server.connect()  # type: ignore[no-untyped-call]
    assert str(theirs) in str(raised.value)
    own(user, command=str(theirs))
    (named,) = (process_of(one) for one in configured_servers())
    assert named.own_start.program(named.params.command) == str(theirs)


@pytest.mark.parametrize("variable", [None, "KODE_CONFIG_DIR", "CLAUDE_CONFIG_DIR"])
def test_servers_of_a_subagent_file_of_the_user_are_the_users(
    variable: str | None, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    text = '---\nname: a\ndescription: a\nmcpServers: [{"x": {"command": "y"}}]\n---\nHi\n'
    directory = tmp_path / "home" / ".claude"
    if variable is not None:
        directory = tmp_path / "own"
        monkeypatch.setenv(variable, str(directory))
    mine, theirs = directory / "agents" / "a.md", project.folder / ".claude" / "agents" / "a.md"
    for path in (mine, theirs):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    source = source_of(AgentDefinition.load(mine))
    assert (source.is_of_user, source.folder) == (True, Path(os.path.realpath(mine.parent)))
    source = source_of(AgentDefinition.load(theirs))
    assert (source.is_of_user, source.folder) == (False, project.folder)


def test_without_a_working_directory_nothing_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.name == "nt":
        pytest.skip("a folder that is in use cannot be deleted there")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert project_folders() == ()
