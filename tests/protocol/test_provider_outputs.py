"""Structured outputs from providers that know of schemas, and from those that do not."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from kantan_agents import Agent, StructuredOutputError
from tests.protocol.scripted import Scripted, Streaming, call, text
from tests.protocol.test_provider_model import run

pytestmark = pytest.mark.anyio


@attrs.frozen
class City:
    """A city."""

    name: str
    people: int


KOBE = '{"name": "Kobe", "people": 1500000}'
KINDS = pytest.mark.parametrize("kind", [Scripted, Streaming])


def look() -> str:
    """Look."""
    return "seen"


async def answer(provider: Any, **options: Any) -> Any:
    agent = Agent("a", "You know cities.", model=provider, output_type=City, **options)
    return (await run(agent, "Which?"))["result"].final_output


@KINDS
async def test_one_that_calls_tools_is_asked_by_a_tool(kind: type[Scripted]) -> None:
    provider = kind(call("final_answer", {"name": "Kobe", "people": 1500000}))
    assert await answer(provider) == City("Kobe", 1500000)
    context = provider.contexts[0]
    assert "final_answer" in context.tools
    assert context.output_schema is None
    assert context.settings["tool_choice"] == "required"


@KINDS
async def test_one_that_only_writes_is_asked_by_the_prompt(kind: type[Scripted]) -> None:
    provider = kind(text("It is Kobe."), text(f"```json\n{KOBE}\n```"))
    assert await answer(provider) == City("Kobe", 1500000)
    first, second = provider.contexts
    assert "final_answer" in first.tools
    assert second.tools == {}
    assert "schema" in (second.instructions or "")


@KINDS
async def test_one_that_takes_a_schema_gets_it(kind: type[Scripted]) -> None:
    provider: Any = kind([text(KOBE[:9]), text(KOBE[9:])])
    provider.supports_output_schema = True
    assert await answer(provider) == City("Kobe", 1500000)
    context = provider.contexts[0]
    assert context.tools == {}
    assert '"people"' in json.dumps(context.output_schema)


@KINDS
async def test_it_works_beside_tools_of_the_agents_own(kind: type[Scripted]) -> None:
    provider = kind(
        [text("I look."), call("look")], call("final_answer", {"name": "Kobe", "people": 1500000})
    )
    assert await answer(provider, tools=[look]) == City("Kobe", 1500000)
    assert list(provider.contexts[0].tools) == ["look", "final_answer"]


async def test_what_does_not_fit_goes_back_and_is_given_up_in_the_end() -> None:
    wrong = '{"name": "Kobe"}'
    with pytest.raises(StructuredOutputError) as caught:
        await answer(Scripted(*[text(wrong)] * 9), output_mode="prompt")
    assert caught.value.code == "E40"
