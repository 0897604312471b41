"""Structured output of a real model in each mode, tools, and judges."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel

from kantan_agents import RUBRIC, JudgmentError, Prompt, StatusJudge, StructuredOutputError
from kantan_agents.core.events import ToolCallFinished
from kantan_agents.testing import OfflineServer
from tests.real_model.language_model import ModelServer, calling_tools
from tests.real_model.recorded_agents import RecordedAgents, ask, ended, settings

STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["run", "stream"])
SEEDS = 10
QUESTION = "Order 7 was promised for Monday. It comes on Thursday."


class Order(BaseModel):
    """A type without texts, which a small model writes without an end."""

    status: Literal["late", "on time", "lost"]
    days: int
    urgent: bool


def modes(recorded: RecordedAgents) -> list[tuple[str, int]]:
    """Return the mode of each recorded answer, and after how many attempts."""
    recorded.flush()
    traces = (recorded.store.trace(trace.trace_id) for trace in recorded.store.traces())
    spans = (span.raw["span_data"] for trace in traces for span in trace.spans if span.raw is not None)
    configurations = [span.get("model_config") or {} for span in spans]
    return [(one["output_mode"], one["output_attempts"]) for one in configurations if "output_mode" in one]


async def order(recorded: RecordedAgents, *, streamed: bool, **options: Any) -> tuple[dict[str, Any], Any]:
    """Return the order that the model has read, and the mode in which it answered."""
    agent = recorded.agent(
        "clerk", "Read the order.", output_type=Order, model_settings=settings(60), **options
    )
    answer = await ask(agent, QUESTION, streamed=streamed)
    return answer.output, modes(recorded)


@STREAMED
async def test_native_by_the_grammar_of_the_server(recorded: RecordedAgents, streamed: bool) -> None:
    output, found = await order(recorded, streamed=streamed)
    assert isinstance(Order.model_validate(output), Order)
    assert found == [("native", 1)]


@STREAMED
async def test_an_output_that_is_cut_names_the_limit(recorded: RecordedAgents, streamed: bool) -> None:
    agent = recorded.agent("clerk", output_type=Order, model_settings=settings(5), output_repairs=0)
    with pytest.raises(StructuredOutputError, match="max_tokens") as caught:
        await ask(agent, QUESTION, streamed=streamed)
    assert [one.mode for one in caught.value.attempts] == ["native"]


@STREAMED
async def test_in_the_tool_form(recorded: RecordedAgents, proxy: OfflineServer, streamed: bool) -> None:
    model = proxy.bundle(api="chat")
    output, found = await order(recorded, streamed=streamed, output_mode="tool", model=model)
    assert isinstance(Order.model_validate(output), Order)
    assert found == [("tool", 1)]


@STREAMED
async def test_in_the_prompt_form(recorded: RecordedAgents, server: ModelServer, streamed: bool) -> None:
    schema = Order.model_json_schema()
    with OfflineServer(calling_tools(server, schema)) as proxy:
        model = proxy.bundle(api="chat")
        output, found = await order(recorded, streamed=streamed, output_mode="prompt", model=model)
    assert isinstance(Order.model_validate(output), Order)
    assert found == [("prompt", 1)]


@STREAMED
async def test_in_the_prompt_form_without_help(recorded: RecordedAgents, streamed: bool) -> None:
    made = await ended(order(recorded, streamed=streamed, output_mode="prompt"), StructuredOutputError)
    if isinstance(made, StructuredOutputError):  # what a model of this size mostly brings about
        assert [one.mode for one in made.attempts] == ["prompt"] * 2
        assert made.text
    else:
        assert isinstance(Order.model_validate(made[0]), Order)
        assert made[1][0][0] == "prompt"


def order_status(order_id: int) -> str:
    """Return the status of an order."""
    return f"Order {order_id} is late."


def refund(order_id: int) -> str:
    """Pay an order back."""
    return f"Order {order_id} is refunded."


@STREAMED
async def test_a_tool_is_called_and_its_result_is_read(
    recorded: RecordedAgents, proxy: OfflineServer, streamed: bool
) -> None:
    model = proxy.bundle(api="chat")
    agent = recorded.agent("support", model=model, tools=[order_status, refund], model_settings=settings(40))
    answer = await ask(agent, "Where is order 7?", streamed=streamed)
    assert answer.output.strip()
    assert answer.usage["requests"] == 2
    (call,) = (event for event in answer.events if isinstance(event, ToolCallFinished))
    assert call.tool in ("order_status", "refund")
    assert str(call.output).startswith("Order ")


@STREAMED
async def test_a_rubric(recorded: RecordedAgents, streamed: bool) -> None:
    rubric = await first_rubric(recorded, streamed=streamed)
    assert {type(one) for one in rubric["comments"]} <= {str}
    recorded.flush()
    (failed,) = recorded.store.failed(threshold=rubric["score"] + 1)
    assert {name: failed.rubric[name] for name in rubric} == rubric


async def first_rubric(recorded: RecordedAgents, *, streamed: bool) -> dict[str, Any]:
    """Ask with one seed after the other: a small model may repeat its comments until it is cut."""
    for seed in range(SEEDS):
        critic = recorded.agent(
            f"critic-{seed}",
            Prompt("critic", "v1", "Score the answer from 0 to 10."),
            output_type=RUBRIC,
            output_repairs=0,
            model_settings=settings(80, seed),
        )
        made = await ended(ask(critic, "How do I log in?", streamed=streamed), StructuredOutputError)
        if not isinstance(made, StructuredOutputError):
            return dict(made.output)
        assert [one.mode for one in made.attempts] == ["native"]
    raise AssertionError(f"none of {SEEDS} rubrics was whole")


async def test_the_status_of_an_output(recorded: RecordedAgents, server: ModelServer) -> None:
    rules = ["All tests pass.", "Some tests fail.", "Anything else."]
    judge = StatusJudge(rules, model=server.bundle(), model_settings=settings(100))
    recorded.add(*(stage.agent for stage in judge._stages))
    made = await ended(judge.judge("12 passed, 1 failed"), JudgmentError)
    if isinstance(made, JudgmentError):
        assert [one.stage for one in made.attempts] == ["structured_output", "phase3_tag", "ai_judge"]
        assert all(one.problem for one in made.attempts)
    else:
        assert made.rule.condition == rules[made.step - 1]
