"""Property: any run replays to the same requests, output and events, also in a new process."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import attrs
import pytest
from agents import set_trace_processors
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kantan_agents import Agent, AgentDefinition, Prompt, task_tool
from kantan_agents.errors import NotReplayableError
from kantan_agents.testing import ScriptedModel
from kantan_agents.testing import ScriptedToolCall as Call
from kantan_agents.testing.properties import event, expect_events
from kantan_agents.testing.strategies import contexts, prompts, tool_calls, tool_rules
from tests.lab.replay.kinds_of_runs import HELPER, KINDS
from tests.lab.replay.taping import RAN, Case, Tapes, hashes
from tests.programs import Preloaded
from tests.sizes import examples


def look(query: str, limit: int = 3) -> str:
    """Look something up."""
    RAN.append("look")
    if limit < 0:
        raise ValueError(f"limit is {limit}")
    return f"{query}:{limit}"


def pay(amount: float, to: str | None = None) -> dict[str, Any]:
    """Pay an amount."""
    RAN.append("pay")
    return {"paid": amount, "to": to}


def tb(x: str) -> str:
    """Do what the helper does."""
    RAN.append("tb")
    return x


@attrs.define
class Found:
    n: int


TOOLS: list[Any] = [look, pay]
calls = tool_calls(tools=TOOLS, malformed=True, invalid=0.3).map(lambda drawn: Call(*drawn))
delegated = st.text(max_size=5).map(
    lambda text: Call("Task", {"description": "d", "prompt": text, "subagent_type": "helper"})
)
answers = st.one_of(
    st.text(max_size=8),
    st.just('{"n": 1}'),
    st.lists(calls, min_size=1, max_size=3),
    st.builds(list, st.tuples(delegated)),
    st.just([Call("transfer_to_other", {})]),
    st.just([Call("tb", {"x": "y"})]),
    st.just([Call("look", {"query": "q", "limit": -1})]),  # raises
    st.sampled_from([RuntimeError("down"), ValueError("odd")]),
)
rules = st.none() | tool_rules(tools=TOOLS)


@attrs.frozen
class Drawn:
    """A run: what its agents are like, and what their model answers."""

    prompt: Prompt = attrs.field()
    context: dict[str, Any]
    rules: dict[str, Any] | None
    answers: list[Any]
    output_type: Any
    mode: Any
    streamed: bool

    def case(self, *, live: bool) -> Case:
        model = ScriptedModel(self.answers if live else [])
        other = Agent("other", "You are other.", model=model, tools=[tb])
        helper = AgentDefinition.loads(HELPER)
        agent: Agent[Any] = Agent(
            "a",
            self.prompt,
            model=model,
            tools=[*TOOLS, tb, task_tool([helper])],
            handoffs=[other],
            output_type=self.output_type,
            output_mode=self.mode,
        )
        context = {**self.context, "user": "Aiko"}
        return Case(agent, "q", context | ({"tool_rules": self.rules} if self.rules else {}))


def _drawn(given: Any, output_type: Any) -> Any:
    modes = st.sampled_from(["auto", "tool", "prompt"])
    return st.builds(
        Drawn, prompts(), contexts(["look", "pay"]), rules, given, output_type, modes, st.booleans()
    )


# Of the first kind, few runs delegate, and most fail or are handed over before they have a structured output.
other_agents: Any = st.builds(list, st.tuples(delegated)) | st.just([Call("transfer_to_other", {})])
drawn_runs = st.one_of(
    _drawn(st.lists(answers, min_size=1, max_size=6), st.sampled_from([None, Found])),
    _drawn(st.tuples(other_agents, answers, st.text(max_size=8)).map(list), st.none()),
    _drawn(
        st.lists(st.lists(calls, min_size=1, max_size=2), max_size=2).map(lambda first: [*first, '{"n": 1}']),
        st.just(Found),
    ),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any")


def _plain(first: Any, rules: Any = None, output_type: Any = None) -> Drawn:
    return Drawn(Prompt("p", "v1", "text"), {}, rules, [first, "one", "two"], output_type, "auto", False)


# Few of the drawn runs are of some of these kinds, and sometimes none is.
@example(_plain([Call("Task", {"description": "d", "prompt": "p", "subagent_type": "helper"})]))
@example(_plain([Call("transfer_to_other", {})]))
@example(_plain([Call("look", {"query": "q", "limit": -1})]))
@example(_plain([Call("look", {"query": "q"})], rules={"deny": ["look"]}))
@example(_plain([Call("tb", {"x": "y"})]))
@example(_plain('{"n": 1}', output_type=Found))
@expect_events("tool ran", "tool failed", "tool denied", "delegated", "handed_off", "structured", "replayed")
@settings(examples(15), suppress_health_check=[HealthCheck.too_slow])
@given(drawn_runs)
def test_any_run_replays(path: Path, drawn: Drawn) -> None:
    set_trace_processors([])
    tapes = Tapes(path)

    async def run() -> None:
        taped = await tapes.record(drawn.case(live=True), streamed=drawn.streamed)
        for one in taped.events:
            event(one["type"])
        try:
            replayed = await tapes.replays(taped, drawn.case(live=False).agent)
        except NotReplayableError as error:
            if "cancelled" not in error.reason:
                raise
            event("cancelled")
        else:
            event("replayed")
            if isinstance(replayed.output, Found):
                event("structured")

    try:
        asyncio.run(run())
    finally:
        tapes.recorder.shutdown()


IN_A_NEW_PROCESS = """
import json, sys
from tests.lab.replay.kinds_of_runs import KINDS
from tests.lab.replay.taping import Tapes, hashes
from kantan_agents import replay
from pathlib import Path

tapes = Tapes(Path(sys.argv[1]))
found = {}
for path in sorted(Path(sys.argv[2]).glob("*.json")):
    replay(path, KINDS[path.stem](False).agent, traced=True)
    found[path.stem] = hashes(tapes.newest())
print(json.dumps(found))
"""


async def test_runs_replay_in_a_new_process(tapes: Tapes, tmp_path: Path, preloaded: Preloaded) -> None:
    """The process has other agents, another clock and other generated ids, and no database of the runs."""
    (tmp_path / "recordings").mkdir()
    (tmp_path / "elsewhere").mkdir()
    expected = {}
    for kind in ("tools", "delegation", "handoff", "structured_repaired", "refused", "redacted", "retried"):
        taped = await tapes.record(KINDS[kind](True), streamed=kind == "delegation")
        taped.recording.save(tmp_path / "recordings" / f"{kind}.json")
        expected[kind] = hashes(taped.recording)
    arguments = ["-c", IN_A_NEW_PROCESS, str(tmp_path / "elsewhere"), str(tmp_path / "recordings")]
    finished = preloaded.run(arguments, env={**os.environ})
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout) == expected
