"""Resources of real servers are reachable: by the model through two tools, and by code."""

from __future__ import annotations

import json
from typing import Any

import agents
import pytest
from agents import Runner
from agents.mcp import MCPServer, MCPServerStdio
from mcp.types import ListResourcesResult, ReadResourceResult

from kantan_agents import Agent, resource_text, with_resources
from kantan_agents.errors import InvalidOptionError, ResourceNotReadError
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from kantan_agents.tools.mcp.resource_tools import why_unsafe
from tests.mcp_servers import RealServers
from tests.tools.mcp.replies import outputs_in
from tests.tools.retrieval.servers import Server

TEXT, BLOB = "demo://resource/dynamic/text/1", "demo://resource/dynamic/blob/1"
GUIDE = "demo://resource/static/document/features.md"


def reading(uri: str, **more: Any) -> ScriptedToolCall:
    return ScriptedToolCall("read_resource", {"uri": uri, **more})


async def answers(
    server: MCPServer, *calls: ScriptedToolCall, context: Any = None, **options: Any
) -> list[Any]:
    """Return what a model receives for calls, as the texts of the content."""
    with OfflineServer([list(calls), "done"]) as offline:
        agent = Agent("a", "x", model=offline.bundle(), mcp_servers=[server], **options)
        await agent.run_async("go", context)
    return [
        output if isinstance(output, str) else "\n".join(part.get("text", part["type"]) for part in output)
        for output in outputs_in(offline.requests[1])
    ]


async def test_the_model_lists_and_reads_resources(everything: MCPServerStdio) -> None:
    server = with_resources(everything)
    listed, text, guide = await answers(
        server, ScriptedToolCall("list_resources"), reading(TEXT), reading(GUIDE)
    )
    found = json.loads(listed)
    assert GUIDE in [one["uri"] for one in found["resources"]]
    assert {"demo://resource/dynamic/text/{resourceId}", "demo://resource/dynamic/blob/{resourceId}"} == {
        one["uriTemplate"] for one in found["templates"]
    }
    assert text.startswith("Resource 1: This is a plaintext resource")
    assert guide.startswith("# Everything Server")


async def test_the_model_reads_why_a_resource_cannot_be_shown(everything: MCPServerStdio) -> None:
    unknown, binary, traversal, no_uri = await answers(
        with_resources(everything),
        reading("demo://nope"),
        reading(BLOB),
        reading("demo://resource/static/document/../../secret"),
        reading("not a uri"),
    )
    assert unknown.startswith("Cannot read demo://nope: ")
    assert unknown.endswith("Resource demo://nope not found")
    assert binary.startswith(f"The resource {BLOB} is text/plain of ")
    assert binary.endswith("bytes, which cannot be shown.")
    assert traversal == "uri must not contain the path segments . and .."
    assert no_uri.startswith("uri must be a URI")


async def test_a_long_text_is_read_in_parts(everything: MCPServerStdio) -> None:
    server = with_resources(everything, max_characters=100)
    whole = await resource_text(everything, GUIDE)
    first, rest = await answers(server, reading(GUIDE), reading(GUIDE, offset=100))
    assert first == (
        f"{whole[:100]}\nThe text goes on: {len(whole) - 100} characters are not shown. "
        "Read them with offset 100."
    )
    assert rest.startswith(whole[100:200])


async def test_rules_for_the_server_cover_its_resources(everything: MCPServerStdio) -> None:
    server = with_resources(everything)
    rules = {"params": {"mcp__everything__read_resource": {"uri": {"pattern": "^demo://resource/static/"}}}}
    refused, guide = await answers(server, reading(TEXT), reading(GUIDE), context={"tool_rules": rules})
    assert refused.startswith("[kantan-agents][E15] Tool parameter pattern mismatch: read_resource.uri")
    assert guide.startswith("# Everything Server")
    (refused,) = await answers(
        server, reading(TEXT), context={"tool_rules": {"deny": ["mcp__everything__*"]}}
    )
    assert refused.startswith("[kantan-agents][E8]")


async def test_no_other_spelling_of_a_uri_reads_what_a_rule_denies(everything: MCPServerStdio) -> None:
    rules = {"deny": [f"read_resource({GUIDE})"]}
    for refused in await answers(
        with_resources(everything), reading(GUIDE), reading(f"{GUIDE}\x01"), context={"tool_rules": rules}
    ):
        assert "Everything Server" not in refused


async def test_a_resource_is_read_by_code(everything: MCPServerStdio) -> None:
    text = await resource_text(everything, TEXT)
    assert text.startswith("Resource 1: ")
    with pytest.raises(ResourceNotReadError, match=r"of MCP server everything: .*not found"):
        await resource_text(with_resources(everything), "demo://nope")
    with pytest.raises(ResourceNotReadError, match="it is not a text"):
        await resource_text(everything, BLOB)


async def test_a_server_without_resources_gets_no_further_tools(files: MCPServerStdio) -> None:
    assert await with_resources(files).list_tools() == await files.list_tools()


async def test_the_plain_sdk_uses_the_tools_as_well(everything: MCPServerStdio) -> None:
    with OfflineServer([reading(TEXT), "done"]) as offline:
        agent = agents.Agent(
            name="a",
            model=Agent("a", "x", model=offline.bundle()).sdk_agent.model,
            mcp_servers=[with_resources(everything)],
        )
        await Runner.run(agent, "go")
    assert "Resource 1: " in str(outputs_in(offline.requests[1]))


async def test_the_wrapped_server_connects_and_keeps_its_options(real_servers: RealServers) -> None:
    inner = MCPServerStdio(
        real_servers.everything(),
        name="everything",
        cache_tools_list=True,
        require_approval="always",
        tool_filter={"allowed_tool_names": ["echo", "read_resource"]},
        client_session_timeout_seconds=60,
    )
    async with with_resources(inner) as server:
        assert server.name == "everything"
        assert [tool.name for tool in await server.list_tools()] == ["echo", "read_resource"]
        assert [tool.name for tool in server.cached_tools or ()][-2:] == ["list_resources", "read_resource"]
        assert with_resources(server) is server
        agent = Agent("a", "x", mcp_servers=[server])
        tools = await agent.sdk_agent.get_mcp_tools(agents.RunContextWrapper({}))
        assert all(getattr(tool, "needs_approval", None) for tool in tools)
        assert (await server.list_prompts()).prompts
        assert inner.session is not None
    assert inner.session is None


async def test_options_must_be_valid() -> None:
    unconnected = MCPServerStdio({"command": "nothing"}, name="nothing")
    with pytest.raises(InvalidOptionError, match="server"):
        with_resources("docs")  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="server"):
        await resource_text("docs", "docs://a")  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="max_characters"):
        with_resources(unconnected, max_characters=0)
    assert repr(with_resources(unconnected)).startswith("with_resources(<")


class TestUris:
    @pytest.mark.parametrize(
        "uri",
        [
            "demo://a/b",
            "file:///a/b.txt",
            "file:///a..b/.hidden",
            "db:table?name=x",
            "https://x.example/%20a",
            "https://x.example",
            "https://u@x.example:8443/é?q={a}#b",
            "https://xn--9ca.example/",
            "http://127.0.0.1:9/x",
            "file:///%E7%A7%98/秘密.txt",
            "demo://Host:80//a%2Fb",
        ],
    )
    def test_a_plain_uri_is_read(self, uri: str) -> None:
        assert why_unsafe(uri) is None

    @pytest.mark.parametrize(
        "uri",
        [
            "file:///public/../secret",
            "file:///public/%2e%2e/secret",
            "file:///public/%252e%252e/secret",
            "file:///public/..",
            "file:///public/.\\secret",
            "FILE:///secret",
            " file:///secret",
            "file:///a b",
            "file:///secret\x01",
            "file:///sec\u200bret",
            "file:///secret%00",
            "docs://%73ecret",
            "docs://a%5fb",
            "docs://public\\secret",
            "file:/secret",
            "file:////secret",
            "file://localhost/secret",
            "https:/x.example/secret",
            "https://X.example/secret",
            "https://x.example:443/secret",
            "https://\uff58.example/secret",
            "http://127.1/secret",
            "http://[x/",
            "secret",
            "",
            None,
            3,
        ],
    )
    def test_a_uri_that_could_be_read_as_another_one_is_refused(self, uri: Any) -> None:
        assert why_unsafe(uri) is not None


class Records(Server):
    """A server with pages of resources, whose contents or error a test gives."""

    def __init__(self, *contents: dict[str, Any], error: Exception | None = None) -> None:
        super().__init__("records", ["find"])
        self.contents = list(contents)
        self.error = error

    async def list_resources(self, cursor: str | None = None) -> ListResourcesResult:
        page = {
            "resources": [{"uri": f"db://{cursor or 'first'}", "name": "n", "annotations": {"priority": 1}}]
        }
        return ListResourcesResult.model_validate(page if cursor else {**page, "nextCursor": "second"})

    async def read_resource(self, uri: str) -> ReadResourceResult:
        if self.error is not None:
            raise self.error
        return ReadResourceResult.model_validate({"contents": [{"uri": uri, **one} for one in self.contents]})


async def test_resources_are_listed_page_by_page() -> None:
    server = with_resources(Records())
    calls = [ScriptedToolCall("list_resources", arguments) for arguments in ({}, {"cursor": "second"})]
    first, second = map(json.loads, await answers(server, *calls))
    resource = {"name": "n"}
    assert first == {
        "next_cursor": "second",
        "resources": [{"uri": "db://first", **resource}],
        "templates": [],  # this server knows none
    }
    assert second == {"resources": [{"uri": "db://second", **resource}]}


async def test_images_are_shown_and_texts_without_content_described() -> None:
    image = {"mimeType": "image/png", "blob": "AAAA"}
    server = Records(image, {"text": "a text"})
    (shown,) = await answers(with_resources(server), reading("db://1"))
    assert shown == "input_image\na text"
    (shown,) = await answers(with_resources(server, max_image_bytes=2), reading("db://1"))
    assert shown == "The resource db://1 is image/png of 3 bytes, which cannot be shown.\na text"
    (shown,) = await answers(with_resources(Records()), reading("db://1"))
    assert shown == "The resource is empty."


async def test_a_failed_connection_is_a_failure_of_the_server() -> None:
    server = with_resources(Records(error=ConnectionError("gone")))
    with pytest.raises(ConnectionError):
        await server.call_tool("read_resource", {"uri": "db://1"})


async def test_a_server_keeps_its_own_tool_of_this_name() -> None:
    inner = Records({"text": "a text"})
    inner.tools["read_resource"] = "Read it differently."
    (answer,) = await answers(with_resources(inner), reading("db://1"))
    assert answer == "records did read_resource"


async def test_wrong_arguments_are_explained() -> None:
    server = with_resources(Records())
    for name, arguments, text in (
        ("list_resources", {"cursor": 3}, "cursor must be"),
        ("read_resource", {"uri": "db://1", "offset": "x"}, "offset must be"),
        ("read_resource", None, "uri must be"),
    ):
        result = await server.call_tool(name, arguments)
        assert text in str(result.content)
