"""Configured servers over streamable HTTP and server-sent events."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import anyio
import pytest

from kantan_agents import Agent, configured_servers
from kantan_agents.errors import MCPServerUnavailableError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.ports import reserved_port
from tests.programs import Preloaded, Program
from tests.tools.conftest import outputs
from tests.tools.mcp.configuration.conftest import SCRIPT, Project

SECRET = "hunter2-hunter2"
Serve = Callable[[str], int]


@pytest.fixture
def serve(project: Project, preloaded: Preloaded) -> Iterator[Serve]:
    """Start a server with a transport on a free port, and return the port."""
    programs: list[Program] = []
    files = ExitStack()

    def start(transport: str) -> int:
        port = reserved_port()
        folder = project.folder / transport
        folder.mkdir()
        log = files.enter_context((folder / "output").open("wb"))
        command = [str(SCRIPT), transport, str(folder), str(port)]
        programs.append(preloaded.popen(command, stdout=log, stderr=log))
        return port

    yield start
    for program in programs:
        program.kill()
        program.wait()
    files.close()


async def listening(port: int) -> None:
    with anyio.fail_after(60):
        while True:
            try:
                await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
            except OSError:
                await anyio.sleep(0.01)
            else:
                return


@pytest.mark.parametrize(("transport", "path"), [("http", "mcp"), ("sse", "sse")])
async def test_a_server_elsewhere_is_used_like_a_process(
    transport: str, path: str, project: Project, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = serve(transport)
    await listening(port)
    monkeypatch.setenv("API_TOKEN", SECRET)
    project.servers["web"] = {
        "type": transport,
        "url": f"http://127.0.0.1:{port}/{path}",
        "headers": {"Authorization": "Bearer ${API_TOKEN}"},
    }
    async with configured_servers(project.write(), trusted=True, allow_env=["API_TOKEN"]) as servers:
        scripted = ScriptedModel(
            [[function_call("read", {"path": "a"}, call_id="1")], [assistant_message("done")]]
        )
        clerk: Agent[Any] = Agent("clerk", "x", model=scripted, mcp_servers=servers, tool_providers=None)
        await clerk.run_async("Go")
        assert f"{transport}: content of a" in str(outputs(scripted))
        assert SECRET not in repr(list(servers))


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_server_that_is_away_is_named_without_the_secrets_of_its_address(
    transport: str, project: Project, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("API_TOKEN", SECRET)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://user:${{API_TOKEN}}@127.0.0.1:{closed.getsockname()[1]}/mcp?key=${{API_TOKEN}}"
        project.servers["web"] = {"type": transport, "url": address, "start_seconds": 3}
        async with configured_servers(project.write(), trusted=True, allow_env=["API_TOKEN"]) as servers:
            clerk: Agent[Any] = Agent("clerk", "x", model=ScriptedModel([]), mcp_servers=servers)
            with caplog.at_level("DEBUG"), pytest.raises(MCPServerUnavailableError) as caught:
                await clerk.run_async("Go")
    assert "MCP server web" in str(caught.value)
    assert SECRET not in str(caught.value)
    assert SECRET not in "\n".join(
        record.getMessage() for record in caplog.records if record.name.startswith("kantan_agents")
    )
