from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import DEFAULT_STAGES, Agent, Pipeline, Run
from kantan_agents.agent.stages import call_sdk, store_output
from kantan_agents.core.pipeline import calls_next_last
from kantan_agents.errors import (
    CallNextNotAwaitedError,
    ConcurrentCallNextError,
    DuplicateStageError,
    InvalidOptionError,
    NotAStageError,
    UnknownStageError,
)
from kantan_agents.testing import ScriptedModel, assistant_message


def new_run() -> Run:
    return Run(agent=None, input="hi", context={}, id="0" * 32)


def tracing_stage(name: Any, log: Any) -> Any:
    async def stage(run: Any, call_next: Any) -> None:
        log.append(("in", name))
        await call_next(run)
        log.append(("out", name))

    return (name, stage)


def last_calling_stage(name: Any, log: Any) -> Any:
    @calls_next_last
    async def stage(run: Any, call_next: Any) -> None:
        log.append(("in", name))
        await call_next(run)

    return (name, stage)


def drive(pipeline: Pipeline, run: Run | None = None) -> Run:
    run = run or new_run()

    async def go() -> None:
        await pipeline(run)

    asyncio.run(go())
    return run


@given(st.lists(st.booleans(), max_size=8))
def test_stages_are_entered_in_order_and_left_in_reverse(kinds: Any) -> None:
    log: list = []
    stages = [(last_calling_stage if last else tracing_stage)(str(i), log) for i, last in enumerate(kinds)]
    drive(Pipeline(stages))
    names = [str(i) for i in range(len(kinds))]
    around = [name for name, last in zip(names, kinds, strict=True) if not last]
    assert [name for kind, name in log if kind == "in"] == names
    assert [name for kind, name in log if kind == "out"] == around[::-1]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=12))
def test_any_insertion_keeps_the_relative_order_of_existing_stages(insertions: Any) -> None:
    pipeline = Pipeline(DEFAULT_STAGES)
    for number, (before, place) in enumerate(insertions):
        target = pipeline.names[place % len(pipeline.names)]
        insert = pipeline.before if before else pipeline.after
        old = pipeline
        pipeline = insert(target, tracing_stage(f"new{number}", []))
        assert [name for name in pipeline.names if name in old.names] == list(old.names)
        index, new = pipeline.names.index(target), pipeline.names.index(f"new{number}")
        assert new == (index - 1 if before else index + 1)


@given(st.integers(0, 6), st.integers(0, 6))
def test_removing_and_reinserting_a_stage_is_the_identity(a: Any, b: Any) -> None:
    pipeline = Pipeline(DEFAULT_STAGES)
    name = pipeline.names[a]
    stage = DEFAULT_STAGES[a]
    rest = pipeline.without(name)
    assert name not in rest.names
    back = rest.before(pipeline.names[a + 1], stage) if a < 6 else rest.after(pipeline.names[5], stage)
    assert back == pipeline
    assert pipeline.replace(pipeline.names[b], DEFAULT_STAGES[b]) == pipeline


def test_a_stage_is_found_by_name_by_type_or_by_identity() -> None:
    class Cache:
        async def __call__(self, run: Any, call_next: Any) -> None:
            await call_next(run)

    pipeline = Pipeline(DEFAULT_STAGES).before(call_sdk, Cache())
    assert pipeline.names[3:5] == ("Cache", "call_sdk")
    assert pipeline.without(Cache) == Pipeline(DEFAULT_STAGES)
    assert pipeline.without("Cache") == Pipeline(DEFAULT_STAGES)
    assert pipeline.after(store_output, ("mine", Cache())).names[6] == "mine"


def test_replace_keeps_the_name_unless_a_pair_gives_another() -> None:
    log: list = []
    _, stage = tracing_stage("x", log)
    assert Pipeline(DEFAULT_STAGES).replace("call_sdk", stage).names[3] == "call_sdk"
    assert Pipeline(DEFAULT_STAGES).replace("call_sdk", ("fake", stage)).names[3] == "fake"


def test_a_pipeline_is_immutable_and_its_repr_shows_the_order() -> None:
    pipeline = Pipeline(DEFAULT_STAGES)
    with pytest.raises(AttributeError):
        pipeline.stages = ()
    pipeline.without("trim_history")
    assert repr(pipeline) == (
        "Pipeline(normalize_context -> render_instructions -> guard_tools -> call_sdk -> "
        "store_output -> trim_history -> emit_metadata)"
    )


@pytest.mark.parametrize("method", ["before", "after", "replace"])
def test_an_unknown_stage_is_e70_and_lists_the_known_ones(method: Any) -> None:
    with pytest.raises(UnknownStageError) as caught:
        getattr(Pipeline(DEFAULT_STAGES), method)("call_skd", tracing_stage("x", []))
    assert str(caught.value).startswith("[kantan-agents][E70] Unknown stage: call_skd (this pipeline has: ")
    assert "call_sdk" in caught.value.known


def test_a_type_that_matches_two_stages_is_e70() -> None:
    class Log:
        def __init__(self, name: Any) -> None:
            self.name = name

        async def __call__(self, run: Any, call_next: Any) -> None:
            await call_next(run)

    pipeline = Pipeline([Log("a"), Log("b")])
    with pytest.raises(UnknownStageError, match="it matches 2 stages, use a name"):
        pipeline.without(Log)
    assert pipeline.without("a").names == ("b",)


def test_a_duplicate_name_is_e71() -> None:
    with pytest.raises(DuplicateStageError, match=r"\[E71\] Duplicate stage: call_sdk"):
        Pipeline(DEFAULT_STAGES).before("call_sdk", call_sdk)


def not_async(run: Any, call_next: Any) -> None:
    pass


async def one_argument(run: Any) -> None:
    pass


class NotCalled:
    async def __call__(self, run: Any, call_next: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (not_async, "it is not async"),
        (one_argument, "too many positional arguments"),
        (NotCalled, "it is a class; pass an instance"),
        (3, "it is not callable"),
        (("a", "b", "c"), "it is not a (name, stage) pair"),
        (("", one_argument), "its name is empty or not a str"),
        (("name", 3), "it is not callable"),
    ],
)
def test_a_value_that_is_not_a_stage_is_e73_with_the_reason(value: Any, reason: Any) -> None:
    with pytest.raises(NotAStageError) as caught:
        Pipeline([value])
    assert caught.value.code == "E73"
    assert caught.value.reason == reason


def test_bound_methods_and_objects_are_stages() -> None:
    class Counter:
        seen = 0

        async def count(self, run: Any, call_next: Any) -> None:
            self.seen += 1
            await call_next(run)

    counter = Counter()
    drive(Pipeline([counter.count, NotCalled()]))
    assert counter.seen == 1
    assert Pipeline([counter.count]).names == ("count",)


def test_calling_next_again_after_a_failure_is_a_retry() -> None:
    tries = []

    async def flaky(run: Any, call_next: Any) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError

    async def retry(run: Any, call_next: Any) -> None:
        for _ in range(3):
            try:
                await call_next(run)
                return
            except ConnectionError:
                continue

    drive(Pipeline([retry, flaky]))
    assert len(tries) == 3


async def twice_at_once(run: Any, call_next: Any) -> None:
    await asyncio.gather(call_next(run), call_next(run))


async def as_tasks(run: Any, call_next: Any) -> None:
    first = asyncio.create_task(call_next(run))
    await asyncio.sleep(0)
    await asyncio.gather(first, call_next(run))


async def slow(run: Any, call_next: Any) -> None:
    await asyncio.sleep(30)


@pytest.mark.parametrize("stage", [twice_at_once, as_tasks])
def test_concurrent_calls_of_call_next_are_e72(stage: Any) -> None:
    with pytest.raises(ConcurrentCallNextError) as caught:
        drive(Pipeline([stage, slow]))
    assert caught.value.stage == stage.__name__


def test_a_stage_marked_calls_next_last_that_calls_twice_is_e72() -> None:
    @calls_next_last
    async def wrong(run: Any, call_next: Any) -> None:
        await call_next(run)
        await call_next(run)

    with pytest.raises(ConcurrentCallNextError):
        drive(Pipeline([wrong]))


async def forgets_await(run: Any, call_next: Any) -> None:
    call_next(run)


async def leaves_it_running(run: Any, call_next: Any) -> None:
    run.state["task"] = asyncio.create_task(call_next(run))
    await asyncio.sleep(0)


def test_forgetting_to_await_is_e74() -> None:
    with pytest.raises(CallNextNotAwaitedError, match="write `await call_next"):
        drive(Pipeline([forgets_await, slow]))


def test_a_call_of_call_next_left_running_is_cancelled_and_e74() -> None:
    run = new_run()

    async def go() -> None:
        with pytest.raises(CallNextNotAwaitedError):
            await Pipeline([leaves_it_running, slow])(run)
        with pytest.raises(asyncio.CancelledError):
            await run.state["task"]

    asyncio.run(go())


def test_not_calling_call_next_ends_the_run_there() -> None:
    log: list = []

    async def stop(run: Any, call_next: Any) -> None:
        log.append("stop")

    drive(Pipeline([tracing_stage("outer", log), stop, tracing_stage("inner", log)]))
    assert log == [("in", "outer"), "stop", ("out", "outer")]


def test_a_stage_may_pass_on_another_run() -> None:
    import attrs

    seen = []

    async def swap(run: Any, call_next: Any) -> None:
        await call_next(attrs.evolve(run, input="other"))

    @calls_next_last
    async def swap_last(run: Any, call_next: Any) -> None:
        await call_next(attrs.evolve(run, input=run.input + "!"))

    async def look(run: Any, call_next: Any) -> None:
        seen.append(run.input)

    drive(Pipeline([swap, swap_last, look]))
    assert seen == ["other!"]


def test_the_repr_of_a_run_shows_its_id_and_state() -> None:
    run = new_run()
    assert repr(run) == f"<Run {'0' * 32} of None, open>"
    run.outcome = "finished"
    assert "finished" in repr(run)


def test_writes_are_undone_in_reverse_order() -> None:
    run = new_run()
    log: list = []
    run.on_failure(lambda: log.append(1))
    run.on_failure(lambda: log.append(2))
    run.roll_back()
    run.roll_back()
    assert log == [2, 1]


@pytest.mark.parametrize("form", [list, tuple, iter, Pipeline])
def test_an_agent_takes_its_pipeline_as_a_list_or_any_iterable_of_stages(form: Any) -> None:
    entered: list[str] = []

    async def first(run: Any, call_next: Any) -> None:
        entered.append("first")
        await call_next(run)

    stages = [("mine", first), *DEFAULT_STAGES]
    agent = Agent("a", "b", model=ScriptedModel([[assistant_message("x")]] * 2), pipeline=form(stages))
    assert agent.pipeline.names == Pipeline(stages).names
    for _ in range(2):
        assert agent.run("hi")["result"].final_output == "x"
    assert entered == ["first", "first"]


@pytest.mark.parametrize("wrong", ["call_sdk", 7, {}, DEFAULT_STAGES[0]])
def test_a_pipeline_that_is_no_list_of_stages_is_e75(wrong: Any) -> None:
    with pytest.raises(
        InvalidOptionError, match=r"\[E75\] Invalid option pipeline: must be a Pipeline or a list"
    ):
        Agent("a", "b", pipeline=wrong)


def test_an_entry_of_the_list_that_is_no_stage_is_e73() -> None:
    with pytest.raises(NotAStageError):
        Agent("a", "b", pipeline=["call_sdk"])
