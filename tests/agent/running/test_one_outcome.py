"""A run finished, failed or was cancelled: caller, events, context, history, trace, log and ``Run`` agree."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest
from agents import Model, SQLiteSession, TracingProcessor, set_trace_processors
from hypothesis import example, given
from hypothesis import strategies as st

from kantan_agents import DEFAULT_STAGES, Agent, Event, Middleware, Pipeline, RunStream, run_of
from kantan_agents.testing import ScriptedModel, assistant_message
from tests.core.events.event_checks import check_whole
from tests.core.events.watched_runs import RULES, Script, built, scripts

ENDS = {"run_finished": "finished", "run_failed": "failed", "run_cancelled": "cancelled"}


class Failures(TracingProcessor):
    """The errors that the outermost run has left in its trace."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def on_trace_start(self, trace: Any) -> None: ...

    def on_trace_end(self, trace: Any) -> None: ...

    def on_span_start(self, span: Any) -> None: ...

    def on_span_end(self, span: Any) -> None:
        is_of_the_run = span.span_data.type == "generation" and span.parent_id is None
        if is_of_the_run and span.error is not None:
            self.errors.append((span.error.get("data") or {}).get("error_type"))

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


class Records(logging.Handler):
    """Everything that says how one run has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.context: dict[str, Any] = {"tool_rules": RULES}
        self.events: list[Event] = []
        self.logged: list[tuple[str, str]] = []
        self.runs: list[Any] = []
        self.failures = Failures()

    def emit(self, record: logging.LogRecord) -> None:
        self.logged.append((vars(record)["agent_run_id"], record.getMessage().removeprefix("run ")))

    async def note(self, run: Any, call_next: Any) -> None:
        self.runs.append(run)
        await call_next(run)

    def outcomes(self, caller: str) -> dict[str, str]:
        run = self.runs[0]
        ends = [event for event in self.events if event.run_id == run.id and event.type in ENDS]
        assert len(ends) == 1
        return {
            "caller": caller,
            "event": ENDS[ends[0].type],
            "log": next(outcome for run_id, outcome in self.logged if run_id == run.id),
            "run": run.outcome,
            "result": "finished" if self.context.get("result") is not None else "not finished",
            "history": "finished" if self.context.get("history") else "not finished",
            "trace": "not finished" if self.failures.errors else "finished",
        }

    def check(self, caller: str) -> None:
        """Assert that all records agree with what the caller got."""
        check_whole(self.events)
        for name, outcome in self.outcomes(caller).items():
            expected = caller
            if name in ("result", "history", "trace") and caller != "finished":
                expected = "not finished"
            assert outcome == expected, (name, self.outcomes(caller))


@contextmanager
def recorded() -> Iterator[Records]:
    records = Records()
    logger = logging.getLogger("kantan_agents.run")
    level = logger.level
    set_trace_processors([records.failures])
    logger.addHandler(records)
    logger.setLevel(logging.INFO)
    try:
        yield records
    finally:
        logger.setLevel(level)
        logger.removeHandler(records)
        set_trace_processors([])


async def outcome_of_task(task: asyncio.Task[Any]) -> str:
    await asyncio.wait([task])
    if task.cancelled():
        return "cancelled"
    return "finished" if task.exception() is None else "failed"


def with_note(records: Records, agent: Agent) -> Agent:
    return agent.clone(middleware=[("note", records.note), *agent.given.middleware])


HOW = ("inside", "at once", "soon", "twice")


def cancelling(records: Records, after: int, how: str, task: Callable[[], asyncio.Task[Any]]) -> Any:
    """Return an observer that cancels the run with the n-th event."""

    async def wait() -> None:
        task().cancel()
        if how == "twice":
            task().cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    def observe(event: Event) -> Any:
        records.events.append(event)
        if len(records.events) != after:
            return None
        if how == "at once":
            task().cancel()
        elif how == "soon":
            asyncio.get_running_loop().call_soon(task().cancel)
        else:
            return wait()
        return None

    return observe


@given(scripts, st.integers(1, 60), st.sampled_from(HOW))
@example(Script([], [], [], hands_over=False, output_dest=False), 18, "inside")
@example(Script([], [], [], hands_over=False, output_dest=False), 18, "at once")
@example(Script([], [], [], hands_over=False, output_dest=False), 18, "twice")
@example(Script([], [], [], hands_over=False, output_dest=False), 17, "at once")
def test_a_run_that_is_cancelled_at_any_event_has_one_outcome_in_all_records(
    script: Script, after: int, how: str
) -> None:
    async def main(records: Records) -> None:
        agent = with_note(records, built(script))
        with agent.subscribe(cancelling(records, after, how, lambda: task)):
            task = asyncio.create_task(agent.run_async("hi", records.context))
            caller = await outcome_of_task(task)
        if records.runs:
            records.check(caller)

    with recorded() as records:
        anyio.run(main, records)


@given(scripts, st.integers(1, 60), st.sampled_from(["cancel", "leave", *HOW]))
def test_a_stream_that_is_cancelled_or_left_at_any_event_has_one_outcome(
    script: Script, after: int, how: str
) -> None:
    async def main(records: Records) -> None:
        agent = with_note(records, built(script))
        streams: list[RunStream[Any]] = []

        async def read() -> None:
            count = 0
            async with agent.stream("hi", records.context) as run:
                streams.append(run)
                async for _ in run:
                    count += 1
                    if count == after and how == "leave":
                        break
                    if count == after and how == "cancel":
                        run.cancel()

        observer = cancelling(records, after if how in HOW else 0, how, lambda: task)
        with agent.subscribe(observer):
            task = asyncio.create_task(read())
            await outcome_of_task(task)
        if not records.runs:
            return
        try:
            assert streams[0].context is records.context
            caller = "finished"
        except Exception as error:  # noqa: BLE001 - the outcome
            caller = "cancelled" if "it was cancelled" in str(error) else "failed"
        records.check(caller)

    with recorded() as records:
        anyio.run(main, records)


def simple(model: Model | None = None, **options: Any) -> Agent:
    return Agent("a", "b", model=model or ScriptedModel([[assistant_message("x")]] * 3), **options)


async def test_a_cancellation_during_run_finished_reaches_the_caller_next() -> None:
    agent, reached = simple(), []

    async def observe(event: Event) -> None:
        if event.type == "run_finished":
            task.cancel()
            await asyncio.Event().wait()

    async def work() -> None:
        context = await agent.run_async("hi")
        reached.append(context["result"].final_output)
        await asyncio.Event().wait()

    with agent.subscribe(observe):
        task = asyncio.create_task(work())
        assert await outcome_of_task(task) == "cancelled"
    assert reached == ["x"]


@pytest.mark.parametrize("kind", ["asyncio", "anyio"])
async def test_a_timeout_while_run_finished_is_delivered_leaves_nothing_behind(kind: str) -> None:
    agent, scopes = simple(), []

    async def observe(event: Event) -> None:
        if event.type == "run_finished" and kind == "asyncio":
            scopes[0].reschedule(0)  # it has expired
            await asyncio.Event().wait()
        elif event.type == "run_finished":
            scopes[0].cancel()
            await asyncio.sleep(0)

    if kind == "asyncio" and not hasattr(asyncio, "timeout"):
        pytest.skip("asyncio.timeout is new in Python 3.11")
    with agent.subscribe(observe):
        if kind == "asyncio":
            async with asyncio.timeout(None) as scope:
                scopes.append(scope)
                context = await agent.run_async("hi")
        else:
            with anyio.CancelScope() as scope:
                scopes.append(scope)
                context = await agent.run_async("hi")
    for _ in range(5):
        await asyncio.sleep(0)  # would be cancelled
    assert context["result"].final_output == "x"


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_exit_in_an_observer_of_run_finished_reaches_the_caller(
    is_async: bool,
) -> None:
    class Leave(BaseException):
        pass

    with recorded() as records:
        agent = with_note(records, simple())

        def leave(event: Event) -> Any:
            async def leave_later() -> None:
                await asyncio.sleep(0)
                raise Leave

            if event.type == "run_finished":
                if is_async:
                    return leave_later()
                raise Leave
            return None

        with agent.subscribe(leave), agent.subscribe(records.events.append), pytest.raises(Leave):
            await agent.run_async("hi", records.context)
        records.check("finished")


async def test_a_run_cancelled_while_run_failed_is_delivered_has_failed() -> None:
    with recorded() as records:
        agent = with_note(records, simple(ScriptedModel([ConnectionError("gone")])))

        async def observe(event: Event) -> None:
            if event.type == "run_failed":
                task.cancel()
                await asyncio.Event().wait()

        with agent.subscribe(observe), agent.subscribe(records.events.append):
            task = asyncio.create_task(agent.run_async("hi", records.context))
            caller = await outcome_of_task(task)
        assert caller == "failed"
        records.check(caller)


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_failure_that_an_outer_middleware_handles_leaves_no_rejected_answer(
    is_streamed: bool,
) -> None:
    seen: list[Any] = []

    async def outer(run: Any, call_next: Any) -> None:
        try:
            await call_next(run)
        except ValueError:
            seen.append((run.result, run.context["result"], list(run.context["history"])))

    async def inner(run: Any, call_next: Any) -> None:
        await call_next(run)
        raise ValueError(run.result.final_output)

    agent = simple(middleware=[outer, inner])
    context: dict[str, Any] = {}
    if is_streamed:
        async with agent.stream("hi", context) as run:
            (*_, last) = [event async for event in run]
        assert last.type == "run_finished"
        assert last.output is None
    else:
        await agent.run_async("hi", context)
    assert seen == [(None, None, [])]
    assert context["result"] is None
    assert context["history"] == []


async def test_a_failed_run_keeps_the_answer_that_was_rejected_on_its_error_only() -> None:
    async def outer(run: Any, call_next: Any) -> None:
        await call_next(run)

    async def inner(run: Any, call_next: Any) -> None:
        await call_next(run)
        raise ValueError

    context: dict[str, Any] = {}
    with pytest.raises(ValueError) as caught:
        await simple(middleware=[outer, inner]).run_async("hi", context)
    failed = run_of(caught.value)
    assert failed is not None
    assert failed.result is not None
    assert failed.result.final_output == "x"
    assert failed.outcome == "failed"
    assert "failed" in repr(failed)
    assert context["result"] is None


class CancelsItself(ScriptedModel):
    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        raise asyncio.CancelledError

    async def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise asyncio.CancelledError
        yield


class CancelsInMiddleware(Middleware):
    async def model_call(self, call: Any, call_next: Any) -> Any:
        await call_next(call)
        raise asyncio.CancelledError


async def cancels_in_stage(run: Any, call_next: Any) -> None:
    raise asyncio.CancelledError


def places() -> dict[str, Callable[[], Agent]]:
    made: dict[str, Callable[[], Agent]] = {
        "model": lambda: simple(CancelsItself([])),
        "around the model": lambda: simple(middleware=[CancelsInMiddleware()]),
        "middleware": lambda: simple(middleware=[cancels_in_stage]),
    }
    for name in Pipeline(DEFAULT_STAGES).names:
        made[f"before {name}"] = lambda name=name: simple(
            pipeline=Pipeline(DEFAULT_STAGES).before(name, cancels_in_stage)
        )
        made[f"after {name}"] = lambda name=name: simple(
            pipeline=Pipeline(DEFAULT_STAGES).after(name, cancels_in_stage)
        )
    return made


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("place", places())
async def test_a_cancellation_that_is_raised_inside_a_run_cancels_it(place: str, is_streamed: bool) -> None:
    with recorded() as records:
        agent = with_note(records, places()[place]())
        with agent.subscribe(records.events.append):
            if is_streamed:
                async with agent.stream("hi", records.context) as run:
                    async for _ in run:
                        pass
            else:
                with pytest.raises(asyncio.CancelledError):
                    await agent.run_async("hi", records.context)
        records.check("cancelled")


class Interrupted(SQLiteSession):
    """A session that cancels the run, or raises, while it is read or saved."""

    act: Any = None
    at = ""

    async def get_items(self, limit: int | None = None) -> Any:
        await self._interrupt("get_items")
        return await super().get_items(limit)

    async def add_items(self, items: Any) -> None:
        await self._interrupt("add_items before")
        await super().add_items(items)
        await self._interrupt("add_items after")

    async def _interrupt(self, at: str) -> None:
        if at == self.at:
            self.act()
            await asyncio.sleep(0)


def raise_cancelled() -> None:
    raise asyncio.CancelledError


def raise_os_error() -> None:
    raise OSError("disk full")


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("act", ["cancel", "raise CancelledError", "raise OSError"])
@pytest.mark.parametrize("at", ["get_items", "add_items before", "add_items after"])
async def test_a_run_that_ends_in_its_session_has_one_outcome_in_all_records(
    at: str, act: str, is_streamed: bool
) -> None:
    session = Interrupted("s")
    session.at = at
    with recorded() as records:
        agent = with_note(records, simple())

        async def run() -> None:
            if not is_streamed:
                await agent.run_async("hi", records.context, session=session)
                return
            async with agent.stream("hi", records.context, session=session) as run:
                async for _ in run:
                    pass
            assert run.context is records.context  # raises if the run was cancelled

        with agent.subscribe(records.events.append):
            task = asyncio.create_task(run())
            session.act = {
                "cancel": task.cancel,
                "raise CancelledError": raise_cancelled,
                "raise OSError": raise_os_error,
            }[act]
            caller = await outcome_of_task(task)
        if is_streamed and act == "raise CancelledError":
            caller = "cancelled"  # the stream has ended, and there is no context
        records.check(caller)
    session.close()


@given(
    st.sampled_from(["SystemExit", "KeyboardInterrupt", "OSError"]),
    st.sampled_from(Pipeline(DEFAULT_STAGES).names),
    st.booleans(),
)
def test_a_sync_run_ended_by_any_stage_has_one_outcome_in_all_records(
    kind: str, name: str, is_after: bool
) -> None:
    error = {"SystemExit": SystemExit, "KeyboardInterrupt": KeyboardInterrupt, "OSError": OSError}[kind]

    async def leave(run: Any, call_next: Any) -> None:
        raise error

    pipeline = Pipeline(DEFAULT_STAGES)
    with recorded() as records:
        agent = with_note(
            records,
            simple(pipeline=pipeline.after(name, leave) if is_after else pipeline.before(name, leave)),
        )
        with agent.subscribe(records.events.append), pytest.raises(error):
            agent.run("hi", records.context)
        records.check("failed")
