"""A call that fails in the same way again and again ends the run; any other failure does not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import agents
import pytest
from agents import RunContextWrapper, function_tool

from kantan_agents import Agent, Middleware, run_of
from kantan_agents.errors import RepeatedFailureError
from kantan_agents.middleware import Deadline, Redact, ToolErrors
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.tools.guards.repeated_failures import FAILED_TURNS


class DiskError(Exception):
    pass


def read_file(path: str) -> str:
    """Read a file."""
    raise DiskError(f"cannot read {path}")


def turns(*calls: Any) -> ScriptedModel:
    """Return a model that makes one call per turn, or several, and then answers "done"."""
    script: list[Any] = []
    for turn, made in enumerate(calls):
        several = made if isinstance(made, list) else [made]
        script.append(
            [function_call(name, args, call_id=f"{turn}-{n}") for n, (name, args) in enumerate(several)]
        )
    return ScriptedModel([*script, [assistant_message("done")]])


def results(model: ScriptedModel) -> list[str]:
    call = model.last_call
    assert call is not None
    return [str(item["output"]) for item in call.input if "output" in item]


FAILING = ("read_file", {"path": "a.txt"})


async def run(model: ScriptedModel, *tools: Any, middleware: Iterable[Any] = (), rules: Any = None) -> Any:
    agent = Agent("a", "x", tools=tools or [read_file], model=model, middleware=middleware)
    return await agent.run_async("Go.", {"tool_rules": rules} if rules else None, max_turns=50)


@pytest.mark.parametrize("middleware", [[], [Deadline(60)], [ToolErrors()], [ToolErrors("message")]])
async def test_the_same_failure_in_five_turns_ends_the_run_with_all_facts(middleware: Any) -> None:
    model = turns(*[FAILING] * 20)
    with pytest.raises(RepeatedFailureError) as caught:
        await run(model, middleware=middleware)
    error = caught.value
    assert (error.code, error.tool_name, error.count) == ("E27", "read_file", FAILED_TURNS)
    assert error.arguments == '{"path": "a.txt"}'
    assert error.reason == "DiskError: cannot read a.txt"
    assert isinstance(error.__cause__, DiskError)
    assert len(model.calls) == FAILED_TURNS
    assert run_of(error) is not None


async def test_the_same_failure_ends_a_streamed_run() -> None:
    agent = Agent("a", "x", tools=[read_file], model=turns(*[FAILING] * 20))
    with pytest.raises(RepeatedFailureError):
        async with agent.stream("Go.", max_turns=50) as stream:
            [event async for event in stream]


async def test_before_the_run_ends_the_model_reads_that_the_call_has_failed_before() -> None:
    model = turns(*[FAILING] * (FAILED_TURNS - 1))
    await run(model)
    first, second, third, fourth = results(model)
    assert first == second
    assert "has failed 3 times in the same way. Do not repeat it" in third
    assert fourth.endswith("After 1 more such failure the run ends.")


async def test_an_exception_that_is_raised_again_and_again_counts() -> None:
    always = DiskError("no")

    @function_tool
    def fetch() -> str:
        raise always

    with pytest.raises(RepeatedFailureError):
        await run(turns(*[("fetch", {})] * 20), fetch)


async def test_equal_arguments_count_however_they_are_written() -> None:
    written = ['{"path":"a", "mode":1}', '{ "mode": 1, "path": "a" }', '{"path": "\\u0061", "mode": 1}']
    with pytest.raises(RepeatedFailureError):
        await run(turns(*[("read_file", text) for text in written * 5]))


async def test_numbers_in_a_message_do_not_make_it_another_failure() -> None:
    times = iter(range(100))

    @function_tool
    def fetch() -> str:
        raise TimeoutError(f"no answer after {next(times)} ms")

    with pytest.raises(RepeatedFailureError):
        await run(turns(*[("fetch", {})] * 20), fetch)


async def test_other_arguments_and_other_failures_count_on_their_own() -> None:
    model = turns(*[("read_file", {"path": name}) for name in "abcdefgh"])
    context = await run(model)
    assert context["result"].final_output == "done"
    reasons = iter("abcdefgh")

    @function_tool
    def fetch() -> str:
        raise DiskError(next(reasons))

    assert (await run(turns(*[("fetch", {})] * 8), fetch))["result"].final_output == "done"


async def test_a_success_of_the_same_call_resets_the_count() -> None:
    outcomes = iter(["fails"] * (FAILED_TURNS - 1) + ["works"] + ["fails"] * (FAILED_TURNS - 1))

    @function_tool
    def fetch() -> str:
        if next(outcomes) == "fails":
            raise DiskError("no")
        return "ok"

    model = turns(*[("fetch", {})] * (2 * FAILED_TURNS - 1))
    assert (await run(model, fetch))["result"].final_output == "done"
    assert results(model)[FAILED_TURNS - 1] == "ok"


@function_tool
def edit(text: str) -> str:
    """Edit."""
    return "ok"


async def test_a_call_that_works_again_and_again_between_the_failures_does_not_reset_the_count() -> None:
    model = turns(*[FAILING, ("edit", {"text": "x"})] * 20)
    with pytest.raises(RepeatedFailureError):
        await run(model, read_file, edit)
    assert len(model.calls) == 2 * (FAILED_TURNS + 1) - 1  # the first time, it is progress


@pytest.mark.parametrize("in_one_turn", [False, True])
async def test_a_new_call_that_works_between_the_failures_resets_the_count(in_one_turn: bool) -> None:
    steps: list[Any] = []
    for number in range(3 * FAILED_TURNS):
        work = ("edit", {"text": str(number)})
        steps += [[FAILING, work] if number % 2 else [work, FAILING]] if in_one_turn else [FAILING, work]
    model = turns(*steps)
    assert (await run(model, read_file, edit))["result"].final_output == "done"
    assert not any("Do not repeat it" in result for result in results(model))


async def test_a_new_call_that_fails_between_the_failures_does_not_reset_the_count() -> None:
    steps = [step for n in range(20) for step in (FAILING, ("read_file", {"path": str(n)}))]
    with pytest.raises(RepeatedFailureError):
        await run(turns(*steps))


@pytest.mark.parametrize(
    "progress", ["{} % done", "{}% done", "{}.5 % done", "{}/10 parts", "{} of 10 parts"]
)
async def test_progress_in_a_message_makes_it_another_failure(progress: str) -> None:
    done = iter(range(100))

    @function_tool
    def poll() -> str:
        raise BlockingIOError(f"job 7 is not ready after 12 s: {progress.format(next(done))}")

    model = turns(*[("poll", {})] * 9)
    assert (await run(model, poll))["result"].final_output == "done"


async def test_parallel_calls_of_a_turn_count_once() -> None:
    model = turns(*[[FAILING] * 4] * (FAILED_TURNS - 1))
    assert (await run(model))["result"].final_output == "done"
    with pytest.raises(RepeatedFailureError):
        await run(turns(*[[FAILING] * 4] * FAILED_TURNS))


async def test_attempts_of_a_middleware_count_once() -> None:
    class ThreeAttempts(Middleware):
        async def tool_call(self, call: Any, call_next: Any) -> Any:
            for _ in range(2):
                try:
                    return await call_next(call)
                except DiskError:
                    continue
            return await call_next(call)

    model = turns(*[FAILING] * (FAILED_TURNS - 1))
    assert (await run(model, middleware=[ThreeAttempts()]))["result"].final_output == "done"


async def test_attempts_that_fail_in_different_ways_count_by_the_last_of_them() -> None:
    attempts = iter(range(100))

    def fetch() -> str:
        """Fetch it."""
        if next(attempts) % 2 == 0:
            raise DiskError("busy")
        raise TimeoutError("too late")

    class TwoAttempts(Middleware):
        async def tool_call(self, call: Any, call_next: Any) -> Any:
            try:
                return await call_next(call)
            except DiskError:
                return await call_next(call)

    with pytest.raises(RepeatedFailureError, match="TimeoutError: too late"):
        await run(turns(*[("fetch", {})] * 20), fetch, middleware=[TwoAttempts()])


async def test_a_call_that_works_at_a_later_attempt_has_not_failed() -> None:
    attempts = iter(range(100))

    def fetch() -> str:
        """Fetch it."""
        if next(attempts) % 2 == 0:
            raise DiskError("no")
        return "ok"

    class TwoAttempts(Middleware):
        async def tool_call(self, call: Any, call_next: Any) -> Any:
            try:
                return await call_next(call)
            except DiskError:
                return await call_next(call)

    model = turns(*[("fetch", {})] * 12)
    context = await run(model, fetch, middleware=[TwoAttempts()])
    assert context["result"].final_output == "done"
    assert set(results(model)) == {"ok"}


async def test_the_users_own_error_function_still_answers_and_its_failures_count() -> None:
    def answer(_context: RunContextWrapper[Any], error: Exception) -> str:
        return f"mine: {type(error).__name__}"

    tool = function_tool(read_file, failure_error_function=answer)
    model = turns(*[FAILING] * (FAILED_TURNS - 1))
    await run(model, tool)
    assert results(model)[:2] == ["mine: DiskError"] * 2
    with pytest.raises(RepeatedFailureError):
        await run(turns(*[FAILING] * FAILED_TURNS), tool)


async def test_timeouts_count() -> None:
    @function_tool(timeout=0.001)
    async def wait() -> str:
        await asyncio.Event().wait()
        return "never"

    with pytest.raises(RepeatedFailureError, match="it timed out"):
        await run(turns(*[("wait", {})] * 20), wait)


@pytest.mark.parametrize(
    "rules", [{"deny": ["read_file"]}, {"params": {"read_file": {"path": {"maxLength": 1}}}}]
)
async def test_refusals_by_the_rules_count(rules: Any) -> None:
    with pytest.raises(RepeatedFailureError) as caught:
        await run(turns(*[FAILING] * 20), rules=rules)
    assert caught.value.__cause__ is None
    assert caught.value.reason.startswith("[kantan-agents][E")


async def test_failures_inside_an_agent_used_as_a_tool_end_the_run() -> None:
    inner = agents.Agent[Any](name="inner", tools=[function_tool(read_file)], model=turns(*[FAILING] * 20))
    tool = inner.as_tool("ask", "Ask.", max_turns=50)
    model = turns(*[("ask", {"input": "x"})] * 20)
    with pytest.raises(RepeatedFailureError, match="read_file failed"):
        await run(model, tool)
    assert len(model.calls) == 1


async def test_each_run_counts_from_zero() -> None:
    model = turns(*[FAILING] * 20)
    agent = Agent("a", "x", tools=[read_file], model=model)
    for _ in range(2):
        with pytest.raises(RepeatedFailureError) as caught:
            await agent.run_async("Go.", max_turns=50)
        assert caught.value.count == FAILED_TURNS


async def test_redacted_data_is_not_in_the_error() -> None:
    def send(to: str) -> str:
        """Send a mail."""
        raise DiskError(f"no such user: {to}")

    for redact in (Redact("email"), Redact("email", restore=True)):
        model = turns(*[("send", {"to": "ann@example.com"})] * 20)
        with pytest.raises(RepeatedFailureError) as caught:
            await run(model, send, middleware=[redact])
        error = caught.value
        assert error.count == len(model.calls) == FAILED_TURNS
        assert "ann@example.com" not in f"{error} {error.arguments} {error.reason} {error.__cause__}"
        assert "no such user" in error.reason
