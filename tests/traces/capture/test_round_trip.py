"""A record survives being made JSON data and being read back, whole or with its shared contents apart."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from agents import ModelSettings, function_tool
from pydantic import BaseModel

from kantan_agents import Agent, Next, Prompt, Run
from kantan_agents.testing import ScriptedModel, function_call
from kantan_agents.traces.capture import RunRecord
from kantan_agents.traces.capture.canonical import decode
from kantan_agents.traces.capture.reading import run_record
from kantan_agents.traces.capture.shared import pack
from kantan_agents.traces.capture.writing import data_of, with_shared_contents
from tests.traces.capture.recording import Recording


class City(BaseModel):
    name: str


@function_tool
async def look(city: str) -> str:
    """Look."""
    return f"sunny in {city} " + "x" * 300


def places(_place: int) -> Any:
    raise AssertionError("nothing is apart")


def back(run: RunRecord) -> RunRecord:
    """Return what is read of the JSON text of a record."""
    return run_record(run.id, run.trace_id, json.loads(json.dumps(data_of(run))), places)


def from_captured(run: RunRecord) -> RunRecord:
    """Return what is read of the record as a recorder gets it."""
    packed = pack(with_shared_contents(data_of(run)))
    contents = [decode(content.packed) for content in packed.shared]
    return run_record(run.id, run.trace_id, decode(packed.own), contents.__getitem__)


async def test_records_of_all_kinds_of_runs_survive(recording: Recording) -> None:
    other = Agent(
        "other", "Help {{ $ctx.user.name }}.", model=ScriptedModel(["Here."]), handoff_description="?"
    )
    looks = [function_call("look", {"city": city}, call_id=city) for city in ("Oslo", "Rome")]
    context: dict[str, Any] = {"user": {"name": "Aiko"}, "tool_rules": {"deny": ["erase"]}}
    prompt = Prompt("p", "1", "For {{ $ctx.user.name }}.", meta={"a": [1]}, strict=True)
    expert = Agent(
        "expert", "Know.", model=ScriptedModel([[looks[0]], "42"]), tools=[look], handoff_description="?"
    )
    asks = [function_call("expert", {"input": "What?"}, call_id="e")]
    leaves = [function_call("transfer_to_other", {}, call_id="h")]
    model = ScriptedModel([looks, asks, [function_call("erase", {}, call_id="x")], leaves])
    settings = ModelSettings(temperature=0.0, extra_args={"k": None})
    agent = Agent("a", prompt, model=model, tools=[look, expert], handoffs=[other], model_settings=settings)
    await agent.run_async("Go", dict(context))
    await Agent("b", "x", model=ScriptedModel([{"name": "Oslo"}]), output_type=City).run_async("Go")
    with pytest.raises(LookupError):
        await Agent("c", "x", model=ScriptedModel([LookupError("no")])).run_async(
            [{"role": "user", "content": "Go"}]
        )
    runs = [run for trace in recording.traces() for run in trace.runs]
    assert [len(run.model_calls) for run in runs] == [7, 1, 1]
    for run in runs:
        assert back(run) == run
        assert from_captured(run) == run
        assert [call.request.hash for call in back(run).model_calls] == [
            call.request.hash for call in run.model_calls
        ]


async def test_the_input_and_the_context_as_given_survive(recording: Recording) -> None:
    async def change(run: Run, call_next: Next) -> None:
        run.input.append({"role": "user", "content": "x" * 300})
        run.context["n"] = run.context.get("n", 0) + 1
        await call_next(run)

    given: list[Any] = [{"role": "user", "content": "y" * 300}]
    agent = Agent("a", "{{ $ctx.n }}", model=ScriptedModel(["Yes."]), middleware=[change])
    await agent.run_async([*given])
    run = recording.run()
    assert (run.given, len(run.input or ()), run.given_context) == (tuple(given), 2, {})
    assert run.agents[0].context == {"n": 1}
    # None is what earlier versions have recorded.
    for before in (run.given, run.input, "", None):
        known = attrs.evolve(run, given=before, earlier=run.input if before is None else None)
        assert back(known) == from_captured(known) == known
        assert known.begins_with == (run.input if before is None else before)
    assert data_of(attrs.evolve(run, given=run.input))["given"] is True
