"""Requests that skip the OpenAI client's type conversion have the same content as without that."""

from __future__ import annotations

import asyncio
import enum
import functools
import sys
from typing import Any

import agents
import pytest
from agents import FunctionTool, OpenAIProvider, Runner, WebSearchTool
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI, Omit
from openai._utils import _transform
from openai.resources.chat.completions import AsyncCompletions
from openai.resources.responses import AsyncResponses
from pydantic import BaseModel

from kantan_agents import Agent
from kantan_agents.models import client_pool
from kantan_agents.models.light_requests import _defer_lists, _restore_lists, use_light_requests
from kantan_agents.testing import OfflineServer, ScriptedToolCall

APIS = pytest.mark.parametrize("api", ["responses", "chat"])
INPUT = {"responses": "input", "chat": "messages"}
CONVERSATION: list[Any] = [
    {"role": "user", "content": [{"type": "input_text", "text": "What is it?"}]},
    {"role": "assistant", "content": "A fish."},
    {"role": "user", "content": "Sure? ☃"},
]


class Fish(BaseModel):
    name: str
    weight: float | None = None


def look(where: str, deep: bool = False, sizes: list[int] | None = None) -> str:
    """Look."""
    return f"nothing in {where}"


def tool(name: str = "look") -> FunctionTool:
    return agents.function_tool(look, name_override=name)


def model_of(client: AsyncOpenAI, api: str) -> agents.Model:
    return OpenAIProvider(openai_client=client, use_responses=api == "responses").get_model("offline-model")


def resource_of(client: Any, api: str) -> Any:
    return client.responses if api == "responses" else client.chat.completions


async def bodies(
    api: str, input: Any, *, streamed: bool = False, settings: Any = None, **options: Any
) -> list[list[dict[str, Any]]]:
    """Return the request bodies of the SDK alone, and those with this library."""
    sent = []
    for with_library in (False, True):
        answers: list[Any] = [
            ScriptedToolCall("look", {"where": "here"}, "call_1"),
            '{"name": "cod", "weight": 1.5}',
        ]
        with OfflineServer(answers if options.get("tools") else answers[1:]) as server:
            bundle = server.bundle(api=api)
            model = model_of(bundle.client, api)
            model_settings = settings or agents.ModelSettings()
            sdk_agent: Any = agents.Agent(
                name="a", instructions="Answer.", model=model, model_settings=model_settings, **options
            )
            if with_library:
                made = Agent("a", "Answer.", model=bundle, model_settings=model_settings, **options)
                sdk_agent = made.sdk_agent
            if streamed:
                result = Runner.run_streamed(sdk_agent, input, context={})
                _ = [event async for event in result.stream_events()]
            else:
                await Runner.run(sdk_agent, input, context={})
            await bundle.client.close()
            sent.append([request.body for request in server.requests])
    return sent


@APIS
@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("input", ["What is it?", CONVERSATION], ids=["text", "items"])
async def test_a_request_has_the_body_that_the_sdk_sends(api: str, input: Any, streamed: bool) -> None:
    sdk_bodies, library_bodies = await bodies(api, input, streamed=streamed, tools=[tool(), tool("other")])
    asked = {"stream_options": {"include_usage": True}} if streamed and api == "chat" else {}
    assert [body | asked for body in sdk_bodies] == library_bodies
    assert len(library_bodies) == 2
    assert [each["type"] for each in library_bodies[1]["tools"]] == ["function"] * 2
    assert "extra_body" not in library_bodies[0]


async def test_a_request_with_other_kinds_of_tools_has_the_same_body() -> None:
    sdk_bodies, library_bodies = await bodies("responses", "Go", tools=[WebSearchTool(), tool()])
    assert sdk_bodies == library_bodies
    assert {each["type"] for each in library_bodies[0]["tools"]} == {"function", "web_search"}


@APIS
async def test_the_users_extra_body_takes_precedence(api: str) -> None:
    settings = agents.ModelSettings(extra_body={"seed": 7, "tools": [{"type": "mine"}]})
    sdk_bodies, library_bodies = await bodies(api, "Go", settings=settings, tools=[tool()])
    assert sdk_bodies == library_bodies
    assert library_bodies[0]["seed"] == 7
    assert library_bodies[0]["tools"] == [{"type": "mine"}]


class Colour(str, enum.Enum):
    RED = "red"


class Text(str):
    __slots__ = ()


plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.lists(plain_json), st.none() | st.dictionaries(st.text(), plain_json))
async def test_deferred_lists_are_restored(values: list[Any], extra: dict[str, Any] | None) -> None:
    options = {"tools": values, "input": "a text", "model": "m", "extra_body": extra}
    light = _defer_lists(AsyncResponses, options, "input", "tools")
    deferred = light.pop("extra_body")
    assert light == {"tools": [], "input": "a text", "model": "m"}
    # The request is the same whether the client passes the object on or copies it.
    assert {**light, **deferred} == {**light, "tools": values, **(extra or {})}
    posted: list[Any] = []

    async def post(path: str, **more: Any) -> None:
        posted.append((path, more))

    given_options = {"headers": {"h": "1"}}
    await _restore_lists(post)(
        "/p", body=light, options={**given_options, "extra_json": deferred}, stream=True
    )
    back = given_options if extra is None else {**given_options, "extra_json": extra}
    assert posted == [("/p", {"body": {**light, "tools": values}, "options": back, "stream": True})]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "odd",
    [
        object(),
        Fish(name="cod"),
        Colour.RED,
        Text("x"),
        (1,),
        {1: 2},
        {Text("k"): 1},
        b"x",
        Omit(),
        [{"a": [Fish]}],
        nested(5_000),
    ],
    ids=[
        "object",
        "model",
        "enum",
        "str subclass",
        "tuple",
        "int key",
        "key",
        "bytes",
        "omit",
        "class",
        "deep",
    ],
)
def test_values_that_are_not_json_are_left_to_the_client(odd: Any) -> None:
    tools = [{"a": odd}]
    light = _defer_lists(AsyncResponses, {"tools": tools, "input": [1]}, "input", "tools")
    assert light["tools"] is tools
    assert light["input"] == []
    assert light["extra_body"].lists == {"input": [1]}


@pytest.mark.parametrize("extra", [object(), "text", [1]], ids=["object", "text", "list"])
def test_an_extra_body_that_is_not_a_mapping_is_left_unchanged(extra: Any) -> None:
    options = {"tools": [1], "extra_body": extra}
    assert _defer_lists(AsyncResponses, options, "tools") is options


@APIS
async def test_the_client_does_not_convert_tools(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    converted: list[Any] = []
    convert = _transform._async_transform_recursive

    async def wrapped(data: Any, **more: Any) -> Any:
        converted.append(data)
        return await convert(data, **more)

    monkeypatch.setattr(_transform, "_async_transform_recursive", wrapped)
    counts = {}
    for many in (1, 30):
        with OfflineServer(["fine"]) as server:
            converted.clear()
            bundle = server.bundle(api=api)
            tools = [tool(f"t{number}") for number in range(many)]
            await Agent("a", "x", model=bundle, tools=tools).run_async(CONVERSATION * many)
            await bundle.client.close()
            counts[many] = len(converted)
            assert len(server.requests[0].body["tools"]) == many
    assert counts[1] == counts[30] > 0


def wrapped_as_function(create: Any, seen: list[Any]) -> Any:
    async def wrapped(self: Any, **options: Any) -> Any:
        seen.append(options)
        return await create(self, **options)

    return wrapped


def wrapped_as_descriptor(create: Any, seen: list[Any]) -> Any:
    return functools.partialmethod(wrapped_as_function(create, seen))


@APIS
@pytest.mark.parametrize("wrapping", [wrapped_as_function, wrapped_as_descriptor])
async def test_a_wrapper_of_the_method_sees_the_whole_request(
    api: str, wrapping: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind: Any = AsyncResponses if api == "responses" else AsyncCompletions
    seen: list[Any] = []
    monkeypatch.setattr(kind, "create", wrapping(kind.create, seen))
    with OfflineServer(["fine"]) as server:
        bundle = server.bundle(api=api)
        await Agent("a", "x", model=bundle, tools=[tool()]).run_async("Go")
        await bundle.client.close()
    assert seen[0][INPUT[api]]
    assert [each["type"] for each in seen[0]["tools"]] == ["function"]


@APIS
@pytest.mark.parametrize("where", ["class", "instance", "subclass"])
async def test_code_further_down_that_reads_or_changes_requests_sees_them_complete(
    api: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def changed(options: Any) -> Any:
        seen.append((dict(options.json_data), options.extra_json))
        options.json_data = {**options.json_data, INPUT[api]: [{"role": "user", "content": "changed"}]}
        return options

    class Changing(AsyncOpenAI):
        async def _prepare_options(self, options: Any) -> Any:
            return changed(await super()._prepare_options(options))

    with OfflineServer(["fine"]) as server:
        bundle = server.bundle(api=api)
        client = bundle.client
        request = AsyncOpenAI.request

        async def wrapped(self: Any, cast_to: Any, options: Any, **more: Any) -> Any:
            return await request(self, cast_to, changed(options), **more)

        if where == "class":
            monkeypatch.setattr(AsyncOpenAI, "request", wrapped)
        elif where == "instance":
            client.request = functools.partial(wrapped, client)
        else:
            client.__class__ = Changing
        agent = Agent("a", "x", model=bundle, tools=[tool()])
        await agent.run_async("Go")
        await client.close()
    ((body, extra),) = seen
    assert extra is None
    assert body[INPUT[api]][-1] == {"role": "user", "content": "Go"}
    assert [each["type"] for each in body["tools"]] == ["function"]
    assert server.requests[0].body[INPUT[api]] == [{"role": "user", "content": "changed"}]


@APIS
@pytest.mark.parametrize("method", ["create", "parse", "with_streaming_response"])
async def test_a_resource_with_custom_methods_is_not_replaced(api: str, method: str) -> None:
    with OfflineServer(["fine"]) as server:
        bundle = server.bundle(api=api)
        resource = resource_of(bundle.client, api)
        mine = getattr(resource, method)
        setattr(resource, method, mine)
        await Agent("a", "x", model=bundle, tools=[tool()]).run_async("Go")
        assert resource_of(bundle.client, api) is resource
        await bundle.client.close()
    assert server.requests[0].body["tools"]


@APIS
async def test_a_custom_resource_is_not_replaced(api: str) -> None:
    kind: Any = AsyncResponses if api == "responses" else AsyncCompletions
    client: Any = AsyncOpenAI(api_key="x", base_url="http://127.0.0.1:1")
    mine = type("Mine", (kind,), {})(client)
    if api == "responses":
        client.responses = mine
    else:
        client.chat.completions = mine
    model = model_of(client, api)
    use_light_requests(client, model)
    assert resource_of(client, api) is mine
    await client.close()


@APIS
async def test_a_resource_is_replaced_once(api: str) -> None:
    client = AsyncOpenAI(api_key="x", base_url="http://127.0.0.1:1")
    model = model_of(client, api)
    use_light_requests(client, model)
    first = resource_of(client, api)
    use_light_requests(client, model)
    assert resource_of(client, api) is first
    assert type(first) not in (AsyncResponses, AsyncCompletions)
    await client.close()


@APIS
def test_a_client_that_is_not_openais_is_left_unchanged(api: str) -> None:
    class Other:
        __slots__ = ()

    other: Any = Other()
    use_light_requests(other, model_of(AsyncOpenAI(api_key="x"), api))
    assert not hasattr(other, "responses")


@APIS
async def test_the_application_can_still_use_the_client(api: str) -> None:
    with OfflineServer(["fine"] * 3) as server:
        bundle = server.bundle(api=api)
        await Agent("a", "x", model=bundle).run_async("Go")
        if api == "responses":
            assert (await bundle.client.responses.create(model="m", input="Go")).output_text == "fine"
        else:
            messages: Any = [{"role": "user", "content": "Go"}]
            made = await bundle.client.chat.completions.create(model="m", messages=messages)
            assert made.choices[0].message.content == "fine"
            with pytest.raises(TypeError, match="messages"):
                await bundle.client.chat.completions.create(model="m")  # type: ignore[call-overload]
        await bundle.client.close()


@pytest.mark.parametrize("has_threads", [True, False])
async def test_what_requests_need_is_imported_once_also_where_no_thread_can_be_started(
    has_threads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(client_pool, "_REQUESTS", "colorsys")  # a small module
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    if not has_threads:
        monkeypatch.setattr(asyncio, "to_thread", refuse)
    client_pool.expect_requests()
    assert client_pool.unimported == ["colorsys"]
    await client_pool.import_for_requests()
    assert client_pool.unimported == []
    assert "colorsys" in sys.modules
    client_pool.expect_requests()
    assert client_pool.unimported == []
