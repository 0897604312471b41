"""Recording a run again: the agent really runs, with the input of the recording."""

from __future__ import annotations

from typing import Any

import pytest
from agents import set_trace_processors, set_tracing_disabled
from agents.tracing import get_trace_provider

from kantan_agents import Agent, Prompt, Recording, replay, replay_async
from kantan_agents.errors import IncompleteRecordError
from kantan_agents.lab import record_again, record_again_async
from kantan_agents.testing import ScriptedToolCall as Call
from tests.lab.replay.keep_recordings import FOLDER
from tests.lab.replay.kinds_of_runs import KINDS, Items, scripted, tool
from tests.lab.replay.taping import RAN, Case, Tapes


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_a_new_recording_has_the_old_input_and_the_new_answers(tapes: Tapes, streamed: bool) -> None:
    def agent(live: bool, *steps: Any) -> Agent[Any]:
        prompt = Prompt("p", "1", "Hi {{ $ctx.user.name }}")
        return Agent("a", prompt, model=scripted(live, *steps), tools=[tool("t1")])

    case = Case(
        agent(True, Call("t1", {"x": "1"}), "Yes"),
        [{"role": "user", "content": "now"}],
        {"user": {"name": "Aiko"}, "tool_rules": {"deny": ["other"]}},
        {"session": Items([{"role": "user", "content": "before"}]), "max_turns": 7},
    )
    old = (await tapes.record(case, streamed=streamed)).recording
    ran = len(RAN)
    new = await record_again_async(old, agent(True, Call("t1", {"x": "2"}), "No"))
    assert RAN[ran:] == ["t1"]
    for name in ("input", "options", "is_streamed", "has_session", "rules"):
        assert getattr(new.root, name) == getattr(old.root, name)
    assert new.root.model_calls[0].request == old.root.model_calls[0].request
    assert new.root.model_calls[0].request.instructions == "Hi Aiko"
    assert (old.root.output, new.root.output) == ("Yes", "No")
    assert (await replay_async(new, agent(False))).output == "No"
    tapes.recorder.force_flush()
    assert new.trace_id in [one.trace_id for one in tapes.store.traces()]


def test_a_run_that_had_failed_may_fail_again() -> None:
    old = Recording.load(FOLDER / "max_turns.json")
    new = record_again(old, KINDS["max_turns"](True).agent)
    assert new.root.error == old.root.error
    replay(new, KINDS["max_turns"](False).agent)


def test_an_error_of_a_run_that_had_not_failed_is_raised() -> None:
    old = Recording.load(FOLDER / "plain.json")
    before = get_trace_provider()._multi_processor._processors  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="down"):
        record_again(old, KINDS["model_fails"](True).agent)
    assert get_trace_provider()._multi_processor._processors == before  # type: ignore[attr-defined]


def test_without_traces_there_is_no_recording() -> None:
    set_trace_processors([])
    set_tracing_disabled(True)
    try:
        with pytest.raises(IncompleteRecordError, match=r"E90.*allow tracing"):
            record_again(Recording.load(FOLDER / "plain.json"), KINDS["plain"](True).agent)
    finally:
        set_tracing_disabled(False)
