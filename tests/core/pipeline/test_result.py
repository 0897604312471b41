from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest
from pydantic import BaseModel

from kantan_agents import Agent, Next, Run, RunContext, run_of, run_result
from kantan_agents.errors import ContextTypeError, NoRunResultError
from kantan_agents.testing import ScriptedModel, assistant_message


class City(BaseModel):
    name: str


def agent(*replies: str, **options: Any) -> Agent[Any]:
    return Agent("a", "b", model=ScriptedModel([[assistant_message(reply)] for reply in replies]), **options)


async def answer_early(run: Run, call_next: Next) -> None:
    run.context["note"] = "no model needed"


async def answer_with_a_text(run: Run, call_next: Next) -> None:
    run.result = "cached"
    await call_next(run)


async def test_run_result_returns_the_result_that_the_context_holds() -> None:
    given: dict[str, Any] = {}
    context = await agent('{"name": "Oslo"}', output_type=City).run_async("x", given)
    assert context is given
    assert type(context) is dict
    assert run_result(context) is context["result"]
    assert run_result(context).final_output == City(name="Oslo")


async def test_what_the_published_type_of_a_result_promises_is_there() -> None:
    promised = [name for name in vars(type_of_result()) if not name.startswith("_")]
    result = run_result(await agent("Hi.").run_async("x"))
    assert len(promised) > 5
    for name in promised:
        assert hasattr(result, name), name


def type_of_result() -> Any:
    import kantan_agents

    return kantan_agents.RunResult


@pytest.mark.parametrize("context", [{}, {"result": None}])
def test_a_context_without_a_result_is_an_error(context: dict[str, Any]) -> None:
    with pytest.raises(NoRunResultError, match="no run has completed") as caught:
        run_result(context)
    assert caught.value.code == "E86"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


async def test_so_is_that_of_a_run_that_a_stage_ended_early() -> None:
    context = await agent(middleware=[answer_early]).run_async("x", {"result": "of an earlier run"})
    with pytest.raises(NoRunResultError, match="a stage ended its run"):
        run_result(context)


async def test_so_is_one_whose_result_is_a_value_of_a_stage() -> None:
    context = await agent(middleware=[answer_with_a_text]).run_async("x")
    assert context["result"] == "cached"
    with pytest.raises(NoRunResultError, match="is a str that a stage has set"):
        run_result(context)


def test_a_context_that_is_not_a_dict_is_e5() -> None:
    with pytest.raises(ContextTypeError):
        run_result([])  # type: ignore[call-overload]


async def test_run_of_returns_the_run_that_an_error_ended() -> None:
    async def fail(run: Run, call_next: Next) -> None:
        raise LookupError("lost")

    with pytest.raises(LookupError) as caught:
        await agent(middleware=[fail]).run_async("x")
    run = run_of(caught.value)
    assert isinstance(run, Run)
    assert run is caught.value.kantan_run
    assert run.input == "x"


def test_run_of_returns_none_for_errors_of_no_run() -> None:
    other = ValueError()
    other.kantan_run = "something else"
    assert run_of(other) is None
    assert run_of(asyncio.CancelledError()) is None


def test_at_run_time_a_run_context_is_a_dict() -> None:
    assert RunContext is dict
    assert RunContext[City] == dict[City]


async def test_an_agent_can_be_made_with_its_type_written_out() -> None:
    made = Agent[City](
        "a", "b", model=ScriptedModel([[assistant_message('{"name": "Oslo"}')]]), output_type=City
    )
    assert isinstance(made, Agent)
    assert run_result(await made.run_async("x")).final_output == City(name="Oslo")
