"""Where configuration files are found, and which server a name means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kantan_agents import configured_servers
from kantan_agents.errors import InvalidOptionError, MCPFileError, UnknownMCPServerError
from kantan_agents.tools.mcp.configuration.configuration import read_configuration
from tests.tools.mcp.configuration.conftest import Project


def write(folder: Path, **commands: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": {name: {"command": one} for name, one in commands.items()}}))
    return path


def commands() -> dict[str, str]:
    return {entry.name: entry.command for entry in read_configuration().entries}


def test_the_users_own_server_comes_before_one_of_the_project_with_the_same_name(
    project: Project, user: Path
) -> None:
    write(project.folder, github="of the project", files="of the project")
    write(user, github="my own")
    assert commands() == {"github": "my own", "files": "of the project"}
    (shadowed,) = read_configuration().shadowed
    assert (shadowed.name, shadowed.command) == ("github", "of the project")


def test_the_nearest_file_comes_first_and_the_search_ends_at_the_root_of_the_repository(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project.folder.parent, outside="x")
    write(project.folder, a="root", b="root")
    write(project.folder / "sub" / "deep", b="deep")
    (project.folder / "kantan-agents.toml").write_text('[mcp.servers.c]\ncommand = "toml"\n')
    monkeypatch.chdir(project.folder / "sub" / "deep")
    assert commands() == {"b": "deep", "a": "root", "c": "toml"}


def test_outside_of_a_repository_only_the_working_directory_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, parent="x")
    write(tmp_path / "sub", here="x")
    monkeypatch.chdir(tmp_path / "sub")
    assert commands() == {"here": "x"}


def test_a_folder_or_a_broken_link_in_place_of_a_file_is_an_error_and_not_skipped(project: Project) -> None:
    (project.folder / ".mcp.json").symlink_to(project.folder / "missing")
    with pytest.raises(MCPFileError):
        read_configuration()


def test_the_xdg_folder_is_the_users_own(
    tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KANTAN_AGENTS_CONFIG_DIR")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    write(tmp_path / "xdg" / "kantan_agents", mine="x")
    assert [entry.source.is_own for entry in read_configuration().entries] == [True]
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write(tmp_path / "home" / ".config" / "kantan_agents", other="x")
    assert commands() == {"other": "x"}


def test_several_files_can_be_named_in_order_of_priority(tmp_path: Path) -> None:
    first, second = write(tmp_path / "1", a="1"), write(tmp_path / "2", a="2", b="2")
    servers = configured_servers([first, str(second)], trusted=True)
    assert [(one.name, one.command) for one in servers.entries] == [("a", "1"), ("b", "2")]
    assert (len(servers), servers.names, repr(servers)) == (2, ("a", "b"), "ConfiguredServers('a', 'b')")


def test_servers_are_chosen_by_name_and_an_unknown_one_is_e184(tmp_path: Path) -> None:
    path = write(tmp_path, github="x", files="y")
    assert configured_servers(path, names=["files"]).names == ("files",)
    assert configured_servers(path, names=[]).names == ()
    with pytest.raises(UnknownMCPServerError, match=r"\(configured: files\)"):
        configured_servers(path, names=["files"], trusted=True)["github"]
    with pytest.raises(UnknownMCPServerError) as caught:
        configured_servers(path, names=["githib"])
    assert "; the nearest name is 'github' (configured: github, files)" in str(caught.value)


def test_a_disabled_server_is_left_out_and_cannot_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / ".mcp.json"
    path.write_text('{"mcpServers": {"on": {"command": "x"}, "off": {"command": "x", "disabled": true}}}')
    servers = configured_servers(path, trusted=True)
    assert servers.names == ("on",)
    with pytest.raises(UnknownMCPServerError, match="says that it is disabled"):
        servers["off"]


@pytest.mark.parametrize(
    "options",
    [{"path": 1}, {"path": [1]}, {"names": "files"}, {"names": [1]}, {"allow_env": "A"}, {"trusted": "yes"}],
)
def test_an_argument_of_a_wrong_type_is_e75(options: dict[str, object], project: Project) -> None:
    with pytest.raises(InvalidOptionError):
        configured_servers(**options)  # type: ignore[arg-type]


def test_a_relative_program_and_cwd_are_those_of_the_project_wherever_the_process_runs(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agents.mcp import MCPServerStdio

    project.path.write_text(
        '{"mcpServers": {"a": {"command": "./bin/serve"}, "b": {"command": "npx", "cwd": "sub"}}}'
    )
    monkeypatch.chdir(tmp_path)
    servers = configured_servers(project.path, trusted=True)
    a, b = (one.wrapped_server for one in servers)  # type: ignore[attr-defined]
    assert isinstance(a, MCPServerStdio)
    assert isinstance(b, MCPServerStdio)
    assert (a.params.command, a.params.cwd) == (str(project.folder / "bin" / "serve"), str(project.folder))
    assert (b.params.command, b.params.cwd) == ("npx", str(project.folder / "sub"))
