"""The servers that other people publish, as the fixture installs them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from agents.mcp import MCPServerStdio, MCPServerStdioParams

from tests import mcp_servers
from tests.mcp_servers import RealServers


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    return tmp_path


SERVERS: dict[str, tuple[Callable[[RealServers, Path], MCPServerStdioParams], str]] = {
    "everything": (lambda servers, _: servers.everything(), "echo"),
    "filesystem": (lambda servers, path: servers.filesystem(path), "read_text_file"),
    "memory": (lambda servers, path: servers.memory(path / "facts.jsonl"), "read_graph"),
    "time": (lambda servers, _: servers.time(), "convert_time"),
    "git": (lambda servers, path: servers.git(path), "git_log"),
}


@pytest.mark.parametrize("name", SERVERS)
async def test_a_published_server_lists_its_tools(
    name: str, real_servers: RealServers, repository: Path
) -> None:
    start, tool = SERVERS[name]
    params = start(real_servers, repository)
    async with MCPServerStdio(params, name=name, client_session_timeout_seconds=60) as server:
        assert tool in [listed.name for listed in await server.list_tools()]


def test_a_server_that_cannot_be_installed_fails_the_test_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9/")  # where nothing listens
    monkeypatch.setenv("NPM_CONFIG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NPM_CONFIG_FETCH_RETRIES", "0")
    monkeypatch.setattr(mcp_servers, "ATTEMPTS", 1)
    servers = RealServers(tmp_path / "servers")
    for _ in range(2):
        with pytest.raises(pytest.fail.Exception, match=r"Cannot install @modelcontextprotocol/server-every"):
            servers.everything()
