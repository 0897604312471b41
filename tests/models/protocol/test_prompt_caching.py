"""Prompt caching: what a request repeats is read from the API's cache, and counted."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from agents import FunctionTool, ModelSettings, function_tool
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, AnthropicProvider, GeminiProvider, ToolRetrieval, record_traces
from kantan_agents.errors import InvalidOptionError, ProviderRequestError
from kantan_agents.models.protocol.http.anthropic_cache import with_breakpoints
from kantan_agents.models.protocol.usage import usage_of
from tests.models.protocol.prompt_caches import AnthropicCache, GeminiCache, error, tokens
from tests.models.protocol.wire_server import Body, WireServer


def make_tools(count: int) -> list[FunctionTool]:
    def make(number: int) -> FunctionTool:
        def work(part: str) -> str:
            return f"done {part}"

        return function_tool(
            work, name_override=f"tool_{number}", description_override=f"Do work {number}. " * 5
        )

    return [make(number) for number in range(count)]


TOOLS = make_tools(40)
SAID = {"content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
CALLED = {
    "content": [{"type": "tool_use", "id": "c1", "name": "tool_3", "input": {"part": "a"}}],
    "stop_reason": "tool_use",
}
TEXT = {"candidates": [{"content": {"parts": [{"text": "Done."}]}, "finishReason": "STOP"}]}
CALL = {
    "candidates": [
        {
            "content": {"parts": [{"functionCall": {"id": "c1", "name": "tool_3", "args": {"part": "a"}}}]},
            "finishReason": "STOP",
        }
    ]
}


def claude(url: str, **options: Any) -> AnthropicProvider:
    return AnthropicProvider("claude-sonnet-4-5", api_key="k", base_url=url, cache=True, **options)


def gemini(url: str, **options: Any) -> GeminiProvider:
    return GeminiProvider("gemini-3-flash", api_key="k", base_url=url, cache=True, **options)


async def test_tools_and_conversation_are_read_from_the_cache_of_claude(tmp_path: Any) -> None:
    cache = AnthropicCache([CALLED, SAID, SAID])
    recorder = record_traces(tmp_path / "traces.sqlite3")
    try:
        with WireServer(cache) as server:
            async with claude(server.url) as provider:
                agent = Agent("a", "Work.", model=provider, tools=TOOLS)
                first = await agent.run_async("Begin.", {})
                again = [*first["result"].to_input_list(), {"role": "user", "content": "More."}]
                second = await agent.run_async(again, {})
        recorder.force_flush()
    finally:
        recorder.shutdown()
    one, two, three = cache.usages
    assert one["cache_read_input_tokens"] == 0
    assert one["cache_creation_input_tokens"] > 1000
    for earlier, later in ((one, two), (two, three)):
        whole = earlier["cache_read_input_tokens"] + earlier["cache_creation_input_tokens"]
        assert later["cache_read_input_tokens"] == whole
        assert later["input_tokens"] == 0
    usage = second["result"].context_wrapper.usage
    assert usage.input_tokens_details.cached_tokens == three["cache_read_input_tokens"]
    assert usage.input_tokens == three["cache_read_input_tokens"] + three["cache_creation_input_tokens"]
    assert usage.total_tokens == usage.input_tokens + 5
    recorded = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert f'"cached_tokens": {three["cache_read_input_tokens"]}'.encode() in recorded


async def test_other_instructions_still_read_the_tools_from_the_cache() -> None:
    cache = AnthropicCache([SAID, SAID])
    with WireServer(cache) as server:
        async with claude(server.url) as provider:
            agent = Agent("a", "Work for {{ $ctx.user }}.", model=provider, tools=TOOLS)
            for user in ("Ann", "Ben"):
                await agent.run_async("Begin.", {"user": user})
    assert cache.usages[1]["cache_read_input_tokens"] > 1000


async def test_without_cache_nothing_is_marked() -> None:
    with WireServer([SAID]) as server:
        async with AnthropicProvider("claude-x", api_key="k", base_url=server.url) as provider:
            await Agent("a", "Work.", model=provider, tools=TOOLS).run_async("Begin.", {})
    assert "cache_control" not in json.dumps(server.requests[0][1])


async def test_the_cache_may_last_an_hour() -> None:
    with WireServer([SAID]) as server:
        async with claude(server.url, cache_ttl="1h") as provider:
            await Agent("a", "Work.", model=provider, tools=TOOLS).run_async("Begin.", {})
    body = server.requests[0][1]
    assert body["tools"][-1]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert body["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


async def test_breakpoints_of_the_settings_count_and_stay_unchanged() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    system = [{"type": "text", "text": f"Part {number}. " * 900, **mark} for number in range(3)]
    given_system = copy.deepcopy(system)
    cache = AnthropicCache([SAID])
    with WireServer(cache) as server:
        async with claude(server.url) as provider:
            settings = ModelSettings(extra_body={"system": system})
            agent = Agent("a", "Work.", model=provider, tools=TOOLS, model_settings=settings)
            await agent.run_async("Begin.", {})
    assert len(cache.usages) == 1
    assert system == given_system


BLOCKS = st.sampled_from(
    [
        {"type": "text", "text": "a"},
        {"type": "text", "text": ""},
        {"type": "thinking", "thinking": "b"},
        {"type": "text", "text": "c", "cache_control": {"type": "ephemeral"}},
        {"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": "d"}]},
    ]
)
CONTENT = st.sampled_from(["a", ""]) | st.lists(BLOCKS, max_size=3)


@given(
    st.lists(st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": CONTENT})),
    CONTENT,
    st.lists(
        st.fixed_dictionaries({"name": st.just("t")}, optional={"defer_loading": st.just(True)}), max_size=3
    ),
)
def test_breakpoints_are_at_most_four_and_change_nothing_else(messages: Any, system: Any, tools: Any) -> None:
    body = {"messages": messages, "system": system, "tools": tools}
    before = copy.deepcopy(body)
    marked = with_breakpoints(body, "5m")
    assert body == before
    given_marks = json.dumps(body).count("cache_control")
    assert json.dumps(marked).count("cache_control") <= max(4, given_marks)
    assert [list(blocks(message["content"])) for message in marked["messages"]] == [
        list(blocks(message["content"])) for message in messages
    ]


def blocks(content: Any) -> Iterator[Any]:
    for block in [{"type": "text", "text": content}] if isinstance(content, str) and content else content:
        yield {name: value for name, value in block.items() if name != "cache_control"}


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_gemini_stores_tools_and_instructions_and_does_not_send_them_again(is_streamed: bool) -> None:
    cache = GeminiCache([CALL, TEXT, TEXT])
    with WireServer(cache) as server:
        async with gemini(server.url) as provider:
            agent = Agent("a", "Work.", model=provider, tools=TOOLS)
            for _ in range(2):
                if is_streamed:
                    async with agent.stream("Begin.", {}) as run:
                        _events = [event async for event in run]
                    context: Any = run.context
                else:
                    context = await agent.run_async("Begin.", {})
    stored = tokens({name: server.requests[0][1][name] for name in ("systemInstruction", "tools")})
    assert cache.created == 1
    assert [path for path, *_ in server.requests].count("/v1beta/cachedContents") == 1
    for _path, body, _headers in server.requests[1:4]:
        assert body["cachedContent"] == "cachedContents/c1"
        assert "tool_7" not in json.dumps(body)
    usage = context["result"].context_wrapper.usage
    assert usage.input_tokens_details.cached_tokens == stored
    assert usage.total_tokens == usage.input_tokens + 5
    assert cache.deleted == ["cachedContents/c1"]


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_prefix_that_gemini_no_longer_has_is_sent_and_stored_again(is_streamed: bool) -> None:
    cache = GeminiCache([TEXT, TEXT, TEXT])
    with WireServer(cache) as server:
        async with gemini(server.url) as provider:
            agent = Agent("a", "Work.", model=provider, tools=TOOLS)
            for number in range(3):
                if is_streamed:
                    async with agent.stream("Begin.", {}) as run:
                        _events = [event async for event in run]
                else:
                    await agent.run_async("Begin.", {})
                if number == 0:
                    cache.contents.clear()
    assert cache.created == 2
    assert "tools" in server.requests[3][1]
    assert server.requests[-2][1]["cachedContent"] == "cachedContents/c2"


async def test_a_prefix_that_gemini_refuses_to_store_is_sent_and_not_tried_again() -> None:
    cache = GeminiCache([TEXT, TEXT], smallest=1_000_000)
    with WireServer(cache) as server:
        async with gemini(server.url) as provider:
            agent = Agent("a", "Work.", model=provider, tools=TOOLS)
            for _ in range(2):
                await agent.run_async("Begin.", {})
    assert [path.rpartition("/")[2] for path, *_ in server.requests] == [
        "cachedContents",
        "gemini-3-flash:generateContent",
        "gemini-3-flash:generateContent",
    ]


@pytest.mark.parametrize("status", [429, 503])
async def test_a_temporary_error_costs_one_request_and_not_one_with_each_call(status: int) -> None:
    def answer(_method: str, path: str, _body: dict[str, Any]) -> Body:
        return error(status, "limit exceeded") if path.endswith("cachedContents") else Body(TEXT)

    with WireServer(answer) as server:
        async with gemini(server.url) as provider:
            agent = Agent("a", "Work.", model=provider, tools=TOOLS)
            for _ in range(3):
                await agent.run_async("Begin.", {})
    stored = [path for path, *_ in server.requests if path.endswith("cachedContents")]
    assert (len(stored), len(server.requests)) == (1, 4)


async def test_a_small_prefix_is_not_stored_at_gemini() -> None:
    with WireServer([TEXT]) as server:
        async with gemini(server.url) as provider:
            await Agent("a", "Work.", model=provider).run_async("Begin.", {})
    assert len(server.requests) == 1


async def test_a_prefix_in_a_script_with_a_token_per_character_is_stored_at_gemini() -> None:
    with WireServer(GeminiCache([TEXT], smallest=300)) as server:
        async with gemini(server.url) as provider:
            await Agent("a", "地図を読む。" * 250, model=provider).run_async("Begin.", {})
    assert server.requests[1][1]["cachedContent"] == "cachedContents/c1"


async def test_other_errors_with_a_stored_prefix_are_raised_as_usual() -> None:
    cache = GeminiCache([])

    def answer(method: str, path: str, body: dict[str, Any]) -> Body:
        return error(429, "slow down") if "cachedContent" in body else cache(method, path, body)

    with WireServer(answer) as server:
        async with gemini(server.url) as provider:
            with pytest.raises(ProviderRequestError, match="slow down"):
                await Agent("a", "Work.", model=provider, tools=TOOLS).run_async("Begin.", {})
    assert cache.deleted == ["cachedContents/c1"]


async def test_another_tool_choice_or_other_tools_are_another_prefix_at_gemini() -> None:
    cache = GeminiCache([TEXT, TEXT])
    with WireServer(cache) as server:
        async with gemini(server.url) as provider:
            for choice in ("auto", "none"):
                settings = ModelSettings(tool_choice=choice)
                agent = Agent("a", "Work.", model=provider, tools=TOOLS, model_settings=settings)
                await agent.run_async("Begin.", {})
    assert cache.created == 2
    assert len(cache.deleted) == 2


async def test_tools_that_are_retrieved_later_are_appended_to_the_prefix() -> None:
    search = {"type": "tool_use", "id": "c1", "name": "find_tools", "input": {"query": "work 120"}}
    cache = AnthropicCache([{"content": [search], "stop_reason": "tool_use"}, SAID])
    with WireServer(cache) as server:
        async with claude(server.url) as provider:
            agent = Agent(
                "a", "Work.", model=provider, tools=make_tools(200), tool_retrieval=ToolRetrieval(top_n=30)
            )
            await agent.run_async("Do work 7.", {})
    first, second = ([tool["name"] for tool in body["tools"]] for _, body, _ in server.requests)
    assert second[: len(first)] == first
    assert "tool_120" in second[len(first) :]


@pytest.mark.parametrize(
    ("make", "options", "named"),
    [
        (claude, {"cache_ttl": "2h"}, "cache_ttl"),
        (gemini, {"cache_seconds": 5}, "cache_seconds"),
        (gemini, {"cache_seconds": True}, "cache_seconds"),
        (AnthropicProvider, {"model": "c", "api_key": "k", "cache": "yes"}, "cache"),
        (GeminiProvider, {"model": "c", "api_key": "k", "cache": 1}, "cache"),
    ],
)
def test_an_option_with_a_wrong_value_is_e75(make: Any, options: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"option {named}: "):
        make(**options) if "model" in options else make("http://127.0.0.1:1", **options)


def test_counts_as_anthropic_writes_them_include_the_cached_tokens() -> None:
    usage = usage_of(
        {
            "usage": {
                "input_tokens": 3,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 10,
                "output_tokens": 5,
            }
        }
    )
    assert usage is not None
    assert (usage.input_tokens, usage.cached_tokens, usage.total_tokens) == (113, 100, 118)
