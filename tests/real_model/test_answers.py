"""Texts of a real model: run and streamed, many at once, and what ends an answer early."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import openai
import pytest
from agents import ModelSettings
from anyio.to_thread import run_sync
from pydantic import BaseModel

from kantan_agents.core.events import ModelCallStarted
from kantan_agents.errors import DeadlineExceededError
from kantan_agents.middleware import Deadline
from tests.real_model.language_model import ModelServer
from tests.real_model.recorded_agents import Answer, RecordedAgents, ask, settings
from tests.real_model.serve_model import CONTEXT

STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["run", "stream"])
QUESTION = "Name three colors."
ENDLESS = ModelSettings(max_tokens=100_000, extra_body={"ignore_eos": True})
"""The answer ends when the context is full, which takes far longer than a test waits."""


class Color(BaseModel):
    name: str


@STREAMED
async def test_a_text_with_its_usage(recorded: RecordedAgents, streamed: bool) -> None:
    answer = await ask(recorded.agent("speaker"), QUESTION, streamed=streamed)
    assert answer.output.strip()
    assert answer.streamed_text == (answer.output if streamed else "")
    used = answer.usage
    assert (used["requests"], used["requests_without_usage"]) == (1, 0)
    assert used["input_tokens"] > 0 < used["output_tokens"] <= 12
    assert used["total_tokens"] == used["input_tokens"] + used["output_tokens"]


@STREAMED
async def test_a_model_by_its_name(
    server: ModelServer, recorded: RecordedAgents, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    answer = await ask(recorded.agent("named", model="compat/smollm2"), QUESTION, streamed=streamed)
    assert answer.output.strip()
    assert answer.usage["output_tokens"] > 0


async def test_twenty_runs_at_once(recorded: RecordedAgents) -> None:
    agent = recorded.agent("speaker", model_settings=settings(max_tokens=6))
    used: dict[int, int] = {}

    async def one(words: int) -> None:
        result = (await agent.run_async("red " * words))["result"]
        assert result.final_output.strip()
        used[words] = result.context_wrapper.usage.input_tokens

    async with anyio.create_task_group() as group:
        for words in range(1, 21):
            group.start_soon(one, words)
    # Each answer is one to its own question: one more word is one more token.
    assert {words: tokens - used[1] + 1 for words, tokens in used.items()} == {n: n for n in range(1, 21)}


@STREAMED
async def test_a_cancelled_run_frees_the_slot_of_the_server(
    server: ModelServer, recorded: RecordedAgents, streamed: bool
) -> None:
    recorded.unreplayable = 1
    agent = recorded.agent("endless", model_settings=ENDLESS)
    async with anyio.create_task_group() as group:
        group.start_soon(partial(ask, agent, QUESTION, streamed=streamed))
        await run_sync(server.wait_until_it_writes)
        group.cancel_scope.cancel()
    await run_sync(server.wait_until_it_is_idle)
    assert server.last_answer_was_interrupted


@STREAMED
async def test_a_deadline_frees_the_slot_of_the_server(
    server: ModelServer, recorded: RecordedAgents, streamed: bool
) -> None:
    recorded.unreplayable = 1
    agent = recorded.agent("endless", model_settings=ENDLESS, middleware=[Deadline(2)])
    with pytest.raises(DeadlineExceededError) as caught:
        await ask(agent, QUESTION, streamed=streamed)
    assert (caught.value.code, caught.value.model_calls) == ("E82", 0)
    await run_sync(server.wait_until_it_is_idle)
    assert server.last_answer_was_interrupted


@STREAMED
@pytest.mark.parametrize("output_type", [None, Color], ids=["text", "structured"])
async def test_a_question_that_is_too_long_is_asked_once_and_named(
    recorded: RecordedAgents, streamed: bool, output_type: Any
) -> None:
    agent = recorded.agent("reader", output_type=output_type)
    seen: list[Any] = []
    with agent.subscribe(seen.append), pytest.raises(openai.BadRequestError, match="context size"):
        await ask(agent, "red " * 2 * CONTEXT, streamed=streamed)
    assert sum(isinstance(event, ModelCallStarted) for event in seen) == 1


@STREAMED
async def test_an_answer_is_cut_at_the_most_tokens(recorded: RecordedAgents, streamed: bool) -> None:
    agent = recorded.agent("brief", model_settings=settings(max_tokens=3))
    answer = await ask(agent, "Count to a hundred.", streamed=streamed)
    assert answer.output.strip()
    assert answer.usage["output_tokens"] == 3
    is_said_to_be_cut(recorded, answer)


def is_said_to_be_cut(recorded: RecordedAgents, answer: Answer) -> None:
    """Check the sign of an answer that was cut: in its events, and in what is recorded."""
    recorded.flush()
    assert {event.finish_reason for event in answer.events if hasattr(event, "finish_reason")} == {"length"}
    assert len(recorded.store.traces(has_cut_answer=True)) == 1


@STREAMED
async def test_an_answer_is_cut_where_the_context_is_full(recorded: RecordedAgents, streamed: bool) -> None:
    agent = recorded.agent("reader", model_settings=ENDLESS)
    answer = await ask(agent, "red " * (CONTEXT - 40), streamed=streamed)
    used = answer.usage
    assert used["input_tokens"] + used["output_tokens"] == CONTEXT
    is_said_to_be_cut(recorded, answer)
