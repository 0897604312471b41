"""Middleware: which objects are accepted, their order on all three levels, and per-run state."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kantan_agents import Agent, Middleware
from kantan_agents.core.interception import layers_of
from kantan_agents.errors import DuplicateStageError, NotAStageError
from kantan_agents.middleware import Redact
from kantan_agents.testing import ScriptedModel, assistant_message, function_call


def greet(name: str) -> str:
    return f"Hello {name}."


def calling(*names: str, then: str = "done") -> ScriptedModel:
    calls = [[function_call("greet", {"name": name}, call_id=f"c{n}")] for n, name in enumerate(names)]
    return ScriptedModel([*calls, [assistant_message(then)]])


class Noting(Middleware):
    """Records the calls that pass through it, on all levels."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name = name
        self.notes = notes

    async def run(self, run: Any, call_next: Any) -> None:
        self.notes.append(f"run > {self.name}")
        await call_next(run)
        self.notes.append(f"run < {self.name}")

    async def model_call(self, call: Any, call_next: Any) -> Any:
        self.notes.append(f"model > {self.name}")
        answer = await call_next(call)
        self.notes.append(f"model < {self.name}")
        return answer

    async def tool_call(self, call: Any, call_next: Any) -> Any:
        self.notes.append(f"tool > {self.name}")
        result = await call_next(call)
        self.notes.append(f"tool < {self.name}")
        return result


async def finish(agent: Agent, *, streamed: bool, context: Any = None, **options: Any) -> dict[str, Any]:
    if not streamed:
        return await agent.run_async("hi", context, **options)
    async with agent.stream("hi", context, **options) as run:
        async for _ in run:
            continue
    return run.context


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_first_entry_is_the_outermost_on_all_levels(streamed: bool) -> None:
    notes: list[str] = []
    middleware = [Noting("a", notes), Noting("b", notes), Noting("c", notes)]
    await finish(
        Agent("x", "y", model=calling("Bo"), tools=[greet], middleware=middleware), streamed=streamed
    )

    def around(level: str, *inside: str) -> list[str]:
        entered = [f"{level} > {name}" for name in "abc"]
        return [*entered, *inside, *(f"{level} < {name}" for name in "cba")]

    assert notes == around("run", *around("model"), *around("tool"), *around("model"))


async def test_stages_and_middleware_share_one_order() -> None:
    notes: list[str] = []

    async def stage(run: Any, call_next: Any) -> None:
        notes.append("run > stage")
        await call_next(run)
        notes.append("run < stage")

    class RunOnly(Middleware):
        async def run(self, run: Any, call_next: Any) -> None:
            notes.append("run > object")
            await call_next(run)

    await Agent(
        "x", "y", model=calling(), middleware=[RunOnly(), stage, ("named", Noting("n", notes))]
    ).run_async("")
    assert notes[:3] == ["run > object", "run > stage", "run > n"]


async def test_an_undefined_level_is_skipped() -> None:
    class ModelOnly(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            return await call_next(call)

    agent = Agent("x", "y", model=calling("Bo"), tools=[greet], middleware=[ModelOnly(), ModelOnly()])
    kept: list[Any] = []

    async def look(run: Any, call_next: Any) -> None:
        kept.append((len(run.model_calls), len(run.tool_calls)))
        await call_next(run)

    agent = Agent("x", "y", model=calling(), middleware=[ModelOnly(), ModelOnly(), look])
    await agent.run_async("hi")
    assert kept == [(2, 0)]
    assert "ModelOnly" not in repr(agent.pipeline)


async def test_an_object_with_such_a_method_need_not_derive_from_the_class() -> None:
    class Plain:
        async def tool_call(self, call: Any, call_next: Any) -> Any:
            return "from a plain object"

    model = calling("Bo")
    plain: Any = Plain()
    await Agent("x", "y", model=model, tools=[greet], middleware=[plain]).run_async("hi")
    assert model.last_call is not None
    assert model.last_call.input[-1]["output"] == "from a plain object"


class Nothing(Middleware):
    pass


class NotAsync(Middleware):
    def model_call(self, call: Any, call_next: Any) -> Any:
        return call_next(call)


class WrongArguments(Middleware):
    async def tool_call(self, call: Any) -> Any:  # type: ignore[override]
        return None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (Nothing(), "defines none"),
        (Nothing, "it is a class"),
        (Noting, "it is a class"),
        (NotAsync(), "model_call is not async"),
        (WrongArguments(), "its tool_call"),
        (5, "is not callable"),
        (lambda run, call_next: None, "not async"),
        (("", Noting("n", [])), "name"),
        (Agent("inner", "x"), "not async"),
    ],
)
def test_an_invalid_middleware_is_e73(value: Any, reason: str) -> None:
    with pytest.raises(NotAStageError, match=r"\[E73\]") as caught:
        Agent("x", "y", middleware=[value])
    assert reason in str(caught.value)


def test_two_run_levels_of_one_name_are_e71() -> None:
    with pytest.raises(DuplicateStageError):
        Agent("x", "y", middleware=[Noting("n", []), Noting("n", [])])


@pytest.mark.parametrize("streamed", [False, True])
async def test_state_belongs_to_one_of_fifty_runs_at_once(streamed: bool) -> None:
    class Counting(Middleware):
        async def run(self, run: Any, call_next: Any) -> None:
            run.state[self] = [run.context["number"]]
            await call_next(run)
            run.context["state"] = run.state[self]

        async def model_call(self, call: Any, call_next: Any) -> Any:
            call.run.state[self].append("model")
            await asyncio.sleep(0)
            return await call_next(call)

        async def tool_call(self, call: Any, call_next: Any) -> Any:
            call.run.state[self].append(json.loads(call.arguments))
            await asyncio.sleep(0)
            return await call_next(call)

    class Own:
        def __init__(self) -> None:
            self.models = {number: calling(f"guest {number}") for number in range(50)}

    own = Own()

    class Picking(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            call.model = own.models[call.run.context["number"]]
            return await call_next(call)

    agent = Agent("x", "y", model=calling(), tools=[greet], middleware=[Counting(), Picking()])
    runs = [finish(agent, streamed=streamed, context={"number": number}) for number in range(50)]
    for number, context in enumerate(await asyncio.gather(*runs)):
        assert context["state"] == [number, "model", {"name": f"guest {number}"}, "model"]


async def test_the_agent_stores_no_state_of_a_run() -> None:
    model = calling("Bo")
    agent = Agent("x", "y", model=model, tools=[greet], middleware=[Noting("n", [])])
    assert agent.sdk_agent.model is model
    inside: list[Any] = []

    class Looking(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            inside.append(call.model)
            return await call_next(call)

    looking = Agent("x", "y", model=calling(), middleware=[Looking()])
    await agent.run_async("hi")
    await looking.run_async("hi")
    assert agent.sdk_agent.model is model
    assert agent.sdk_agent.clone().model is model
    assert inside == [looking.sdk_agent.model]


def test_an_object_counts_also_if_only_its_method_is_a_stage() -> None:
    redact = Redact()
    assert layers_of([("masked", redact.run)]).middleware == (redact,)
