"""The trace context reaches MCP servers: in the ``_meta`` of each call, and as headers for those who ask."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

from kantan_agents import Agent, mcp_trace_client, mcp_trace_meta
from kantan_agents.testing import ScriptedToolCall
from kantan_agents.traces.telemetry import conventions as names
from tests.tools.mcp.session_server import SessionServer
from tests.traces.telemetry.receiver import Receiver

Make = Callable[..., Agent]
PROCESS = Path(__file__).with_name("mcp_process.py")


class Noting(SessionServer):
    """Keeps the ``_meta`` and the headers of each request."""

    def __init__(self) -> None:
        self.metas: dict[str, Any] = {}
        self.headers: dict[str, str | None] = {}
        super().__init__()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        noting, handler = self, super()._handler()

        class Handler(handler):  # type: ignore[valid-type]
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = self.rfile.read(length)
                request = json.loads(body)
                noting.metas[request["method"]] = request.get("params", {}).get("_meta") or {}
                noting.headers[request["method"]] = self.headers.get("traceparent")
                self._send(*noting.answer(request, self.headers.get("Mcp-Session-Id")))

        return Handler


async def test_a_server_process_answers_in_the_trace_of_the_run(
    sent: Callable[[], Receiver], support: Make
) -> None:
    params: Any = {"command": sys.executable, "args": [str(PROCESS)]}
    async with MCPServerStdio(params, name="traced", client_session_timeout_seconds=60) as server:
        context = await support(ScriptedToolCall("where", {}), "Ok.", mcp_servers=[server]).run_async("Go")
    (answer,) = [item["output"] for item in context["result"].to_input_list() if item.get("output")]
    run = sent().one("invoke_agent support")
    assert run.trace_id in str(answer)
    tool = sent().one("execute_tool where")
    assert tool.attributes[names.TOOL_TYPE] == "extension"
    assert "mcp_tools traced" in [span.name for span in sent().spans]


@pytest.mark.parametrize("by_resolver", [True, False])
async def test_a_call_over_http_has_the_context_in_its_meta(
    sent: Callable[[], Receiver], support: Make, by_resolver: bool
) -> None:
    options: Any = {"tool_meta_resolver": mcp_trace_meta} if by_resolver else {}
    with Noting() as noting:
        async with MCPServerStreamableHttp({"url": noting.url}, name="s", **options) as server:
            await support(ScriptedToolCall("read", {}), "Ok.", mcp_servers=[server]).run_async("Go")
    tool = sent().one("execute_tool read")
    assert noting.metas["tools/call"]["traceparent"].startswith(f"00-{tool.trace_id}-{tool.span_id}-")
    assert noting.headers["tools/call"] is None, "headers are for those who ask"


async def test_headers_are_sent_on_request(sent: Callable[[], Receiver], support: Make) -> None:
    with Noting() as noting:
        params: Any = {"url": noting.url, "httpx_client_factory": mcp_trace_client, "headers": {"x-own": "1"}}
        async with MCPServerStreamableHttp(params, name="s") as server:
            await support(ScriptedToolCall("read", {}), "Ok.", mcp_servers=[server]).run_async("Go")
    tool = sent().one("execute_tool read")
    assert str(noting.headers["tools/call"]).startswith(f"00-{tool.trace_id}-{tool.span_id}-")
    assert noting.headers["initialize"] is None, "the connection is no part of a run"


def test_without_a_span_there_is_no_meta() -> None:
    assert mcp_trace_meta() is None
