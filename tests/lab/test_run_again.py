"""Whatever middleware changes, a run that is made again sends the same, and may use the same tools."""

from __future__ import annotations

import asyncio
import copy
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
from agents import SQLiteSession, custom_span, trace
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kantan_agents import Agent, AgentDefinition, CommandLoader, Recording, replay_async, task_tool
from kantan_agents.lab import (
    Cohort,
    Dataset,
    evaluate_async,
    evaluator,
    record_again_async,
    replay_cohort_async,
)
from kantan_agents.testing import ScriptedModel
from kantan_agents.testing import ScriptedToolCall as Call
from kantan_agents.traces.capture import RunRecord
from kantan_agents.traces.store.experiment_keys import EXPERIMENT_KEY
from tests.lab.changed_runs import CONFIGS, INPUTS, INSTRUCTIONS, MIDDLEWARE, count, write_commands
from tests.lab.replay.cohorts import HARMLESS, Recorder, recording
from tests.sizes import examples

OF_ANOTHER = "Help at visit {{ $ctx.visits }} to {{ $ctx.city }}."
_RAN: list[str] = []


def look(x: str) -> str:
    """Look."""
    return f"saw {x}"


def wipe(path: str) -> str:
    """Wipe."""
    _RAN.append(path)
    return "wiped"


@evaluator
def done(_finished: Any) -> bool:
    """Return that it is done."""
    return True


def answer(call: Any) -> Any:
    """Look once, then answer."""
    items = call.input if isinstance(call.input, list) else []
    # The middleware and the filter add an item each.
    looked = any(item.get("type") == "function_call_output" for item in items[-3:])
    return "For carl@example.com: done." if looked else Call("look", {"x": "it"})


@attrs.frozen
class Drawn:
    """A run: the names of its middleware, its input and what it is in."""

    names: list[str]
    input: Any
    in_session: bool = False
    in_span: bool = False
    config: str | None = None

    @property
    def run_config(self) -> dict[str, Any] | None:
        return None if self.config is None else CONFIGS[self.config]

    def agent(self, loader: CommandLoader) -> Agent[Any]:
        middleware = [MIDDLEWARE[name](loader) for name in self.names]
        model = ScriptedModel(answer)
        return Agent("a", INSTRUCTIONS, model=model, tools=[look, wipe], middleware=middleware)

    async def run(self, loader: CommandLoader) -> None:
        agent = self.agent(loader)
        options: dict[str, Any] = {"run_config": self.run_config}
        if self.in_session:
            options["session"] = SQLiteSession("s")
            await self.agent(loader).run_async("My first question", session=options["session"])
        with suppress(Exception):
            if self.in_span:
                with trace("outer"), custom_span("outer"):
                    await agent.run_async(copy.deepcopy(self.input), **options)
            else:
                await agent.run_async(copy.deepcopy(self.input), **options)
        if self.in_session:
            options["session"].close()


def _kind(name: str) -> str:
    # Of two, the record has the placeholders of the outer one in an answer, and the run those of the inner.
    return "redact" if name == "restore" else name


def sent(record: RunRecord) -> list[Any]:
    """Return what a run has sent, and the tools that it might use."""
    requests = [call.request for call in record.model_calls]
    return [(one.instructions, _inputs(one.input), [tool.name for tool in one.tools]) for one in requests]


def _inputs(items: Any) -> Any:
    kept = ("role", "content", "output", "name", "arguments")
    return items if isinstance(items, str) else [{key: item.get(key) for key in kept} for item in items]


@pytest.fixture(scope="module")
def loader(tmp_path_factory: pytest.TempPathFactory) -> CommandLoader:
    folder: Path = tmp_path_factory.mktemp("commands")
    return write_commands(folder)


def newest(recorder: Recorder, **filters: Any) -> Recording:
    recorder.recorder.force_flush()
    found = recorder.store.traces(limit=1, **filters)[0].trace_id
    return Recording.from_trace(recorder.store, found)


async def replayed(recorder: Recorder, recorded: Recording, agent: Agent[Any], config: Any) -> Recording:
    await replay_async(recorded, agent, traced=True, run_config=config)
    return newest(recorder)


async def in_cohort(recorder: Recorder, recorded: Recording, agent: Agent[Any], config: Any) -> Recording:
    cohort = Cohort.of(recorder.store, [recorded.trace_id])
    experiment = await replay_cohort_async(cohort, agent, HARMLESS, run_config=config)
    assert not experiment.skipped, experiment.skipped
    return newest(recorder, metadata={EXPERIMENT_KEY: experiment.name})


async def evaluated(recorder: Recorder, recorded: Recording, agent: Agent[Any], config: Any) -> Recording:
    dataset = Dataset.from_traces(recorder.store, limit=1)
    options: dict[str, Any] = {"name": recorded.trace_id, "run_config": config}
    evaluation = await evaluate_async(agent, dataset, [done], store=recorder.store, **options)
    return newest(recorder, metadata={EXPERIMENT_KEY: evaluation.name})


async def recorded_again(
    _recorder: Recorder, recorded: Recording, agent: Agent[Any], config: Any
) -> Recording:
    return await record_again_async(recorded, agent, run_config=config)


WAYS = (replayed, in_cohort, evaluated, recorded_again)
IN_SESSIONS = [
    (Drawn(["around"], "hi", in_session=True), evaluated),
    (Drawn(["redact"], INPUTS[-2], in_session=True, config="filter"), recorded_again),
    (Drawn([], INPUTS[-1], in_session=True, config="callback"), evaluated),
]


def check(loader: CommandLoader, drawn: Drawn, ways: Sequence[Any]) -> None:
    """Check that a run that is made again has the same requests, tools and output."""

    async def go(recorder: Recorder) -> None:
        for way in ways:
            _RAN.clear()
            await drawn.run(loader)
            recorded, ran = newest(recorder), [*_RAN]
            _RAN.clear()
            again = await way(recorder, recorded, drawn.agent(loader), drawn.run_config)
            assert sent(again.root) == sent(recorded.root), way.__name__
            assert again.root.output == recorded.root.output, way.__name__
            assert (ran if way in (evaluated, recorded_again) else []) == _RAN, way.__name__

    with tempfile.TemporaryDirectory() as folder, recording(Path(folder, "traces.sqlite3")) as recorder:
        asyncio.run(go(recorder))


@pytest.mark.parametrize(("drawn", "way"), IN_SESSIONS)
def test_a_question_in_a_session_is_sent_once(loader: CommandLoader, drawn: Drawn, way: Any) -> None:
    check(loader, drawn, [way])


def handing_off() -> Agent[Any]:
    other = Agent("b", OF_ANOTHER, model=ScriptedModel(["done"]))
    return Agent(
        "a", "Help.", model=ScriptedModel([Call("transfer_to_b", {})]), handoffs=[other], middleware=[count]
    )


def delegating() -> Agent[Any]:
    helper = AgentDefinition(name="b", description="helps", system_prompt=OF_ANOTHER)
    call = Call("Task", {"description": "d", "prompt": "p", "subagent_type": "b"})
    model = ScriptedModel([call, "helped", "done"])
    return Agent("a", "Help.", model=model, tools=[task_tool([helper])], middleware=[count])


@pytest.mark.parametrize("make", [handing_off, delegating])
@pytest.mark.parametrize("way", [evaluated, recorded_again])
def test_a_value_that_only_another_agent_reads_is_as_it_was_given(
    tmp_path: Path, make: Callable[[], Agent[Any]], way: Any
) -> None:
    with recording(tmp_path / "traces.sqlite3") as recorder:

        async def go() -> None:
            await make().run_async("hi", {"visits": 4, "city": "Kobe"})
            recorded = newest(recorder)
            again = await way(recorder, recorded, make(), None)
            assert [sent(run) for run in again.runs] == [sent(run) for run in recorded.runs]

        asyncio.run(go())


@pytest.mark.parametrize("way", WAYS)
def test_an_escaped_text_is_not_run_as_a_command(loader: CommandLoader, way: Any) -> None:
    check(loader, Drawn(["commands"], "//wipe notes"), [way])


@pytest.mark.slow
@example(Drawn(["commands"], "/review 12"))
@example(Drawn(["commands"], "/wipe notes", in_span=True))
@example(Drawn(["please"], "hi", in_session=True))
@example(Drawn(["note"], INPUTS[-1]))
@example(Drawn(["count"], "hi"))
@settings(examples(15, 40), suppress_health_check=[HealthCheck.too_slow])
@given(
    st.builds(
        Drawn,
        st.lists(st.sampled_from(sorted(MIDDLEWARE)), unique_by=_kind, max_size=4),
        st.sampled_from(INPUTS),
        st.booleans(),
        st.booleans(),
        st.sampled_from([None, *CONFIGS]),
    )
)
def test_a_run_that_is_made_again_sends_the_same(loader: CommandLoader, drawn: Drawn) -> None:
    check(loader, drawn, WAYS)
