"""Connections to real servers, opened once for a module: a server takes half a second to start."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agents.mcp import MCPServerStdio

from tests.mcp_servers import RealServers


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def everything(real_servers: RealServers) -> AsyncIterator[MCPServerStdio]:
    """The server with an example of each feature, connected."""
    async with MCPServerStdio(
        real_servers.everything(), name="everything", cache_tools_list=True, client_session_timeout_seconds=60
    ) as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of ``files``."""
    return tmp_path_factory.mktemp("files").resolve()


@pytest.fixture(scope="module")
async def files(real_servers: RealServers, folder: Path) -> AsyncIterator[MCPServerStdio]:
    """The server that reads and writes files, connected."""
    async with MCPServerStdio(
        real_servers.filesystem(folder),
        name="files",
        cache_tools_list=True,
        client_session_timeout_seconds=60,
    ) as server:
        yield server
