"""A provider owns what it gets, and a run owns what the provider returns."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import attrs
import pytest
from agents import ModelSettings, function_tool
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from kantan_agents import Agent, ContentSegment, ProviderResponse
from kantan_agents.models.protocol import ProviderContext, ToolSpec
from tests.models.protocol.scripted import Scripted, call, text
from tests.sizes import examples


@function_tool
def read(path: str, lines: list[int]) -> str:
    """Read a file."""
    return f"{path} {lines}"


class Answer(BaseModel):
    notes: list[str]


INPUT: list[Any] = [
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "Read."},
            {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "low"},
            {"type": "ui", "ui": {"chosen": [1, {"a": "b"}]}, "mood": {"deep": ["x"]}},
        ],
    }
]


def settings() -> ModelSettings:
    return ModelSettings(
        temperature=0.5,
        reasoning={"effort": "low"},
        metadata={"team": "a"},
        extra_body={"deep": {"list": [1, {"x": 2}]}},
        extra_args={"stop": ["END"]},
        extra_headers={"x-a": "b"},
        response_include=["reasoning.encrypted_content"],
    )


def shown(context: ProviderContext) -> str:
    """Return everything a provider gets, as JSON."""

    def plain(value: Any) -> Any:
        return value.to_dict() if hasattr(value, "to_dict") else value.model_dump()

    fields = {field.name: getattr(context, field.name) for field in attrs.fields(ProviderContext)}
    return json.dumps({**fields, "run_id": None}, default=plain, sort_keys=False)


def containers(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield every dict, list and model that can be reached from a value."""
    if id(value) in seen or value is None or isinstance(value, (str, int, float)):
        return
    seen.add(id(value))
    if isinstance(value, (dict, list, BaseModel)):
        yield value
    parts: Any = []
    if isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, (list, tuple)):
        parts = value
    elif isinstance(value, BaseModel):
        parts = value.__dict__.values()
    elif attrs.has(type(value)):
        names = [field.name for field in attrs.fields(type(value)) if field.init]
        parts = [getattr(value, name) for name in names]
    for part in list(parts):
        yield from containers(part, seen)


def vandalise(value: Any, picks: list[int]) -> None:
    """Change containers inside of a value, those that ``picks`` selects."""
    for pick in picks:
        found = list(containers(value, set()))
        if not found:
            return
        chosen = found[pick % len(found)]
        if isinstance(chosen, dict):
            if chosen and pick % 3 == 0:
                chosen.pop(next(iter(chosen)))
            elif chosen and pick % 3 == 1:
                chosen.update(dict.fromkeys(list(chosen), "changed"))
            else:
                chosen["added"] = {"by": "provider"}
        elif isinstance(chosen, list):
            chosen.clear() if pick % 2 else chosen.append("added")
        else:
            chosen.effort = "high"


class Vandal(Scripted):
    """Changes what it gets, and after its answer what it has returned."""

    supports_output_schema = True

    def __init__(self, *answers: Any, picks: list[int]) -> None:
        super().__init__(*answers)
        self.picks = picks
        self.seen: list[str] = []
        self.returned: list[Any] = []

    async def generate(self, prompt: str, context: ProviderContext) -> ProviderResponse:
        vandalise(self.returned, self.picks)
        self.seen.append(shown(context))
        response = await super().generate(prompt, context)
        self.returned.append(response)
        vandalise(context, self.picks)
        return response


class StreamingVandal(Vandal):
    """Changes each piece that it has yielded as soon as the run asks for the next one."""

    async def stream(
        self, prompt: str, context: ProviderContext
    ) -> AsyncIterator[ContentSegment | ProviderResponse]:
        response = await self.generate(prompt, context)
        for segment in response.segments:
            yield segment
            vandalise(segment, self.picks)
        yield ProviderResponse([], response.metadata)


def answers() -> list[Any]:
    odd = ContentSegment("text", text="I look.", extra={"mood": {"deep": ["calm"]}})
    drawn = ContentSegment("ui", ui={"chart": {"rows": [1, 2]}})
    reading = attrs.evolve(call("read", {"path": "a", "lines": [1]}, "c1"), extra={"why": ["asked"]})
    return [[odd, drawn, reading], *([text('{"notes": ["n"]}')] for _ in range(2))]


async def two_runs(kind: type[Vandal], picks: list[int]) -> list[str]:
    """Return what the provider gets in two runs of one agent that continue one conversation."""
    provider = kind(*answers(), picks=picks)
    agent = Agent("a", "Read.", model=provider, tools=[read], output_type=Answer, model_settings=settings())
    given_input = copy.deepcopy(INPUT)
    items: Any = given_input
    for _ in range(2):
        if kind is StreamingVandal:
            async with agent.stream(items, {}) as run:
                _events = [event async for event in run]
            context: Any = run.context
        else:
            context = await agent.run_async(items, {})
        items = [*context["result"].to_input_list(), {"role": "user", "content": "Again."}]
    assert given_input == INPUT
    return provider.seen


@pytest.mark.parametrize("kind", [Vandal, StreamingVandal])
@examples(20, 40)
@given(picks=st.lists(st.integers(0, 500), min_size=1, max_size=12))
async def test_whatever_a_provider_changes_later_requests_are_those_of_a_fresh_agent(
    kind: type[Vandal], picks: list[int]
) -> None:
    assert await two_runs(kind, picks) == await two_runs(kind, [])


async def test_a_schema_that_a_provider_edits_in_place_stays_as_it_was() -> None:
    class Editor(Scripted):
        async def generate(self, prompt: str, context: ProviderContext) -> ProviderResponse:
            spec = context.tools["read"]
            assert spec.parameters is spec.parameters
            assert json.loads(json.dumps(spec.parameters)) == spec.parameters
            seen.append(spec.to_dict())
            spec.parameters["properties"].clear()
            spec.extra["x"] = 1
            return await super().generate(prompt, context)

    seen: list[Any] = []
    provider = Editor(text("a"), text("b"))
    agent = Agent("a", "Read.", model=provider, tools=[read])
    for _ in range(2):
        await agent.run_async("hi", {})
    assert seen[0]["parameters"]["properties"]["path"] == {"title": "Path", "type": "string"}
    assert seen[1] == seen[0]


def test_a_lent_tool_is_an_equal_value() -> None:
    spec = ToolSpec("t", "d", {"type": "object", "properties": {"a": {}}}, extra={"x": [1]})
    assert spec.lend() == spec
    assert repr(spec.lend()) == repr(spec)
    assert spec.lend().to_json() == spec.to_json()
    assert attrs.evolve(spec.lend(), name="u") == attrs.evolve(spec, name="u")
    assert copy.deepcopy(spec.lend()) == spec
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = spec.lend().nothing
