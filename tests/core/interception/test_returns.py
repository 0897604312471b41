"""What a middleware returns by mistake is an error that names the middleware."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, Middleware
from kantan_agents.errors import MiddlewareResultError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call

both = pytest.mark.parametrize("streamed", [False, True])


def look(city: str) -> str | None:
    """Look."""
    return f"{city} is sunny" if city else None


class Watching(Middleware):
    """Passes tool calls on, and returns what ``how`` says."""

    def __init__(self, how: str = "result") -> None:
        self.how = how

    async def tool_call(self, call: Any, call_next: Any) -> Any:
        if self.how == "nothing of a call":
            await call_next(call)
        elif self.how == "an awaitable":
            return call_next(call)
        elif self.how == "nothing of a call not awaited":
            call_next(call)
        elif self.how == "result":
            return await call_next(call)
        return None


class Answering(Middleware):
    """Passes model calls on without returning the answer."""

    async def model_call(self, call: Any, call_next: Any) -> Any:
        await call_next(call)


def weather(middleware: list[Any], city: str = "Oslo") -> tuple[Agent, ScriptedModel]:
    call = function_call("look", {"city": city}, call_id="c1")
    model = ScriptedModel([[call], [assistant_message("done")]])
    return Agent("a", "b", model=model, tools=[look], middleware=middleware), model


async def finish(agent: Agent, streamed: bool) -> Any:
    if not streamed:
        return await agent.run_async("hi")
    async with agent.stream("hi") as run:
        async for _ in run:
            pass
    return run.context


@both
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("nothing of a call", "it returned None although call_next had returned a result"),
        ("nothing of a call not awaited", "it did not await call_next"),
        ("nothing", "it returned None without a result of call_next"),
        ("an awaitable", "it returned an awaitable"),
    ],
)
async def test_a_tool_call_middleware_without_return_is_an_error_that_names_it(
    streamed: bool, how: str, reason: str
) -> None:
    agent, model = weather([Watching(), Watching(how), Watching()])
    with pytest.raises(MiddlewareResultError) as caught:
        await finish(agent, streamed)
    assert str(caught.value) == (
        f"[kantan-agents][E80] Middleware Watching.tool_call: {reason}; "
        "write `return await call_next(call)`, or return a result instead of it"
    )
    assert len(model.calls) == 1


@both
async def test_a_model_call_middleware_without_return_is_an_error_that_names_it(streamed: bool) -> None:
    agent, _ = weather([Watching(), Answering()])
    with pytest.raises(
        MiddlewareResultError, match=r"Middleware Answering\.model_call: .* ModelResponse, not None"
    ):
        await finish(agent, streamed)


@both
async def test_a_middleware_may_return_the_none_that_a_tool_has_returned(streamed: bool) -> None:
    agent, model = weather([Watching(), Watching("nothing of a call")], city="")
    assert (await finish(agent, streamed))["result"].final_output == "done"
    assert len(model.calls) == 2


async def test_a_middleware_may_call_again_until_the_tool_returns_none() -> None:
    results = ["pending", "pending", None]

    def poll() -> str | None:
        """Poll."""
        return results.pop(0)

    class Waiting(Middleware):
        async def tool_call(self, call: Any, call_next: Any) -> Any:
            while (result := await call_next(call)) == "pending":
                continue
            return result

    model = ScriptedModel([[function_call("poll", {}, call_id="c1")], [assistant_message("done")]])
    await Agent("a", "b", model=model, tools=[poll], middleware=[Waiting()]).run_async("hi")
    assert results == []
    assert model.last_call is not None
    assert model.last_call.input[-1]["output"] == "None"


async def test_a_middleware_that_turns_an_error_into_none_is_an_error() -> None:
    def fail() -> str:
        """Fail."""
        raise ValueError

    class Hiding(Middleware):
        async def tool_call(self, call: Any, call_next: Any) -> Any:
            try:
                return await call_next(call)
            except ValueError:
                return None

    model = ScriptedModel([[function_call("fail", {}, call_id="c1")], [assistant_message("done")]])
    with pytest.raises(MiddlewareResultError, match="it returned None without a result of call_next"):
        await Agent("a", "b", model=model, tools=[fail], middleware=[Hiding()]).run_async("hi")


@given(
    hows=st.lists(
        st.sampled_from(["result", "nothing of a call", "nothing", "an awaitable"]), min_size=1, max_size=4
    ),
    city=st.sampled_from(["Oslo", ""]),
)
def test_a_result_is_lost_only_with_an_error(hows: list[str], city: str) -> None:
    agent, model = weather([Watching(how) for how in hows], city)
    lost = {"nothing", "an awaitable", *(["nothing of a call"] if city else [])}
    if lost & {*hows}:
        with pytest.raises(MiddlewareResultError):
            agent.run("hi")
        assert len(model.calls) == 1
    else:
        agent.run("hi")
        assert model.last_call is not None
        assert model.last_call.input[-1]["output"] == (look(city) or "None")


async def test_a_stage_that_ends_the_run_without_a_result_is_named_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def forgetful(run: Any, call_next: Any) -> None:
        pass

    async def cached(run: Any, call_next: Any) -> None:
        run.result = "from a cache"

    with caplog.at_level(logging.WARNING, "kantan_agents.run"):
        await Agent("a", "b", model=ScriptedModel([]), middleware=[cached]).run_async("hi")
        assert not caplog.records
        await Agent("a", "b", model=ScriptedModel([]), middleware=[forgetful]).run_async("hi")
    assert [record.message for record in caplog.records] == [
        "stage forgetful ended the run without a result: it did not call call_next"
    ]


async def test_a_pipeline_that_never_calls_the_model_and_sets_no_result_is_named_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def only(run: Any, call_next: Any) -> None:
        await call_next(run)

    async def answers(run: Any, call_next: Any) -> None:
        await call_next(run)
        run.result = "an answer"

    with caplog.at_level(logging.WARNING, "kantan_agents.run"):
        await Agent("a", "b", model=ScriptedModel([]), pipeline=[answers]).run_async("hi")
        assert not caplog.records
        await Agent("a", "b", model=ScriptedModel([]), pipeline=[only]).run_async("hi")
    assert [record.message for record in caplog.records] == [
        "the run ended without a result: its pipeline has no stage call_sdk"
    ]
