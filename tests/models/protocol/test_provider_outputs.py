"""Structured outputs from providers with and without support for output schemas."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from kantan_agents import Agent, StructuredOutputError
from tests.models.protocol.scripted import Scripted, Streaming, call, text
from tests.models.protocol.test_provider_model import run


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
async def test_a_provider_that_calls_tools_returns_the_output_as_a_tool_call(kind: type[Scripted]) -> None:
    provider = kind(call("final_answer", {"name": "Kobe", "people": 1500000}))
    assert await answer(provider) == City("Kobe", 1500000)
    context = provider.contexts[0]
    assert "final_answer" in context.tools
    assert context.output_schema is None
    assert context.settings["tool_choice"] == "required"


@KINDS
async def test_a_provider_that_only_writes_text_gets_the_schema_in_the_prompt(kind: type[Scripted]) -> None:
    provider = kind(text("It is Kobe."), text(f"```json\n{KOBE}\n```"))
    assert await answer(provider) == City("Kobe", 1500000)
    first, second = provider.contexts
    assert "final_answer" in first.tools
    assert second.tools == {}
    assert "schema" in (second.instructions or "")


@KINDS
async def test_a_provider_that_supports_schemas_gets_the_schema(kind: type[Scripted]) -> None:
    provider: Any = kind([text(KOBE[:9]), text(KOBE[9:])])
    provider.supports_output_schema = True
    assert await answer(provider) == City("Kobe", 1500000)
    context = provider.contexts[0]
    assert context.tools == {}
    assert '"people"' in json.dumps(context.output_schema)


@KINDS
async def test_the_output_tool_works_together_with_the_agents_tools(kind: type[Scripted]) -> None:
    provider = kind(
        [text("I look."), call("look")], call("final_answer", {"name": "Kobe", "people": 1500000})
    )
    assert await answer(provider, tools=[look]) == City("Kobe", 1500000)
    assert list(provider.contexts[0].tools) == ["look", "final_answer"]


async def test_an_invalid_output_is_retried_and_finally_raises_an_error() -> None:
    wrong = '{"name": "Kobe"}'
    with pytest.raises(StructuredOutputError) as caught:
        await answer(Scripted(*[text(wrong)] * 9), output_mode="prompt")
    assert caught.value.code == "E40"
