"""A tree of delegations has one trace, one event stream and one total usage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agents
import pytest
from agents import Usage

from kantan_agents import Agent, TraceStore, record_traces, task_tool
from kantan_agents.core.events import Delegated, RunFinished, RunStarted, TextDelta
from kantan_agents.testing import ModelStep, ScriptedModel
from tests.agent.delegation.cast import Cast, boss, definition, delegate, failing, say, use

FILES = (definition("lead"), definition("helper"))


def tree() -> Cast:
    return Cast(
        boss=[delegate("lead"), say("done")],
        lead=[delegate("helper"), say("led")],
        helper=[use("read", path="a"), say("helped")],
    )


async def test_the_tree_is_one_trace(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite3"
    recorder = record_traces(path)
    await boss(tree(), *FILES).run_async("Go")
    recorder.shutdown()
    store = TraceStore(path)
    (summary,) = store.traces()
    assert summary.metadata["agent_name"] == "boss"
    spans = {span.span_id: span for span in store.trace(summary.trace_id).spans}
    runs = {_name_in(span): span for span in spans.values() if _name_in(span) is not None}
    assert sorted(runs) == ["helper", "lead"]

    def above(span: Any) -> list[str]:
        names = []
        while span.parent_id in spans:
            span = spans[span.parent_id]
            names += [name for name in [_name_in(span)] if name]
        return names

    assert above(runs["helper"]) == ["lead"]
    assert above(runs["lead"]) == []


def _name_in(span: Any) -> Any:
    """Return the agent whose run a span records."""
    data = span.raw.get("span_data", span.raw)
    return data.get("data", {}).get("agent_name") if data.get("name") == "agent_run" else None


async def test_the_outermost_stream_has_the_events_of_all_runs() -> None:
    events: list[Any] = []
    async with boss(tree(), *FILES).stream("Go") as run:
        async for event in run:
            events.append(event)
    begun = {event.agent: event for event in events if isinstance(event, RunStarted)}
    assert list(begun) == ["boss", "lead", "helper"]
    assert begun["lead"].parent_run_id == begun["boss"].run_id
    assert begun["helper"].parent_run_id == begun["lead"].run_id
    delegated = [(event.agent, event.to_agent) for event in events if isinstance(event, Delegated)]
    assert delegated == [("boss", "lead"), ("lead", "helper")]
    assert [event.agent for event in events if isinstance(event, RunFinished)] == ["helper", "lead", "boss"]
    # The children stream as the outermost run does.
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["helped", "led", "done"]


async def test_children_do_not_stream_unless_the_outermost_run_does() -> None:
    cast = tree()
    await boss(cast, *FILES).run_async("Go")
    assert not any(call.streamed for part in cast.parts.values() for call in part.calls)


def used(step: list[Any], tokens: int) -> ModelStep:
    usage = Usage(requests=1, input_tokens=tokens, output_tokens=1, total_tokens=tokens + 1)
    return ModelStep(step, usage=usage)


async def test_the_usage_of_all_runs_is_added_up() -> None:
    cast = Cast(
        boss=[used(delegate("lead"), 1), used(say("done"), 10)],
        lead=[used(delegate("helper"), 100), used(say("led"), 1000)],
        helper=[used(say("helped"), 10000)],
    )
    context = await boss(cast, *FILES).run_async("Go")
    usage = context["result"].context_wrapper.usage
    assert (usage.requests, usage.input_tokens, usage.output_tokens) == (5, 11111, 5)


async def test_the_usage_of_a_failed_child_counts() -> None:
    cast = Cast(
        boss=[used(delegate("lead"), 1), used(say("done"), 10)],
        lead=[used(use("read", path="a"), 100), failing(agents.ModelBehaviorError("broken"))],
    )
    context = await boss(cast, *FILES).run_async("Go")
    assert context["result"].context_wrapper.usage.input_tokens == 111


@pytest.mark.parametrize("when", ["the model", "a middleware", "a violation"])
async def test_the_usage_of_a_failed_child_counts_whatever_the_failure(when: str) -> None:
    async def break_after(run: Any, call_next: Any) -> None:
        await call_next(run)
        raise RuntimeError("broken")

    steps: dict[str, list[Any]] = {
        "the model": [used(use("read", path="a"), 100), failing(RuntimeError("no connection"))],
        "a middleware": [used(say("led"), 100)],
        "a violation": [used(use("write", path="a"), 100), say("never")],
    }
    cast = Cast(boss=[used(delegate("lead"), 1), used(say("done"), 10)], lead=steps[when])
    tasks: dict[str, dict[str, Any]] = {
        "the model": {},
        "a middleware": {"middleware": [break_after]},
        "a violation": {"tool_rules": {"deny": ["write"]}, "on_rule_violation": "raise"},
    }
    context = await boss(cast, *FILES, task=tasks[when]).run_async("Go")
    assert "[E35]" in cast.results("boss")[0]
    assert context["result"].context_wrapper.usage.input_tokens == 111


async def test_each_run_records_its_own_prompt_version() -> None:
    metadata: dict[str, Any] = {}

    async def note(run: Any, call_next: Any) -> None:
        metadata[run.agent.name] = run.metadata
        await call_next(run)

    versioned = definition("helper", version="v7")
    cast = Cast(boss=[delegate("helper"), say("done")], helper=[say("helped")])
    await boss(cast, versioned, middleware=[note]).run_async("Go")
    assert metadata["helper"]["prompt_name"] == "helper"
    assert metadata["helper"]["prompt_version"] == "v7"
    assert metadata["boss"]["agent_name"] == "boss"


async def test_the_callers_tracing_options_apply_to_all_runs() -> None:
    configs: list[Any] = []

    async def note(run: Any, call_next: Any) -> None:
        configs.append(run.run_config)
        await call_next(run)

    config = agents.RunConfig(
        trace_include_sensitive_data=False, tracing_disabled=True, trace_metadata={"tenant": "acme"}
    )
    await boss(tree(), *FILES, middleware=[note]).run_async("Go", run_config=config)
    assert [one.trace_include_sensitive_data for one in configs] == [False, False, False]
    assert [one.tracing_disabled for one in configs] == [True, True, True]
    assert [one.trace_metadata for one in configs] == [{"tenant": "acme"}] * 3


async def test_a_model_in_the_callers_run_config_applies_to_all_runs() -> None:
    cast = tree()
    agent = Agent("boss", "You are boss.", model=ScriptedModel(), tools=[_read(), task_tool(FILES)])
    await agent.run_async("Go", run_config=agents.RunConfig(model=cast))
    assert cast.results("boss") == ["led"]


async def test_an_invalid_call_is_reported_once() -> None:
    events: list[Any] = []
    cast = Cast(boss=[delegate("lead"), say("done")], lead=[use("missing"), say("led")])
    agent = boss(cast, *FILES)
    agent.subscribe(events.append)
    await agent.run_async("Go")
    refused = [event for event in events if event.type == "tool_call_denied"]
    assert [(event.agent, event.tool) for event in refused] == [("lead", "missing")]


def _read() -> Any:
    def read(path: str) -> str:
        """Read."""
        return path

    return read
