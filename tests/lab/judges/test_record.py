"""What a judgement records in a trace database."""

from __future__ import annotations

from typing import Any

import agents
import openai
import pytest
from agents import RunConfig
from kantan_llm.tracing.analysis import find_failed_judges

from kantan_agents import JudgmentError, TraceStore
from kantan_agents.testing import Reply
from tests.lab.judges.stage_server import answering, answering_with, make_judge


def stages_in(traces: Any) -> dict[str, dict[str, Any]]:
    spans = [span for span in traces.spans(span_type="custom") if str(span.name).startswith("judge: ")]
    return {span.name: span.raw["span_data"]["data"] for span in spans}


async def test_every_stage_is_a_span_with_instruction_and_reply_in_one_trace(traces: Any) -> None:
    with answering(structured="hm", tagged="[MOVEMENT:9]", evaluation={"matched_index": 2, "reason": "r"}):
        verdict = await make_judge().judge("the work")
    assert verdict.method == "ai_judge"
    stages = stages_in(traces)
    assert [*stages] == ["judge: structured_output", "judge: phase3_tag", "judge: ai_judge"]
    for attempt, data in zip(verdict.attempts, stages.values(), strict=True):
        assert (data["stage"], data["instruction"], data["reply"], data["problem"]) == (
            attempt.stage,
            attempt.instruction,
            attempt.reply,
            attempt.problem,
        )
    assert [data["decided"] for data in stages.values()] == [False, False, True]
    last = stages["judge: ai_judge"]
    assert (last["method"], last["step"], last["reason"]) == ("ai_judge", 2, "r")
    assert len({span.trace_id for span in traces.spans()}) == 1
    (trace,) = traces.traces(keywords=["the work"])
    assert trace.workflow_name == "status-judge"


async def test_the_store_finds_the_trace_and_the_judges_in_it(traces: Any) -> None:
    with answering(tagged="[MOVEMENT:1]"):
        await make_judge(name="gate").judge("the work")
        await make_judge(name="gate").judge("more work")
    store = TraceStore(traces.path)
    newest, oldest = store.traces(agent="gate-tagged")
    assert oldest.trace_id < newest.trace_id
    assert store.traces(keywords=["more work"]) == [newest]
    runs = [span for span in store.trace(newest.trace_id).spans if span.name == "agent_run"]
    parents = {span.span_id: span.name for span in store.trace(newest.trace_id).spans}
    assert [parents[str(run.parent_id)] for run in runs] == ["judge: structured_output", "judge: phase3_tag"]
    assert find_failed_judges(store, 10**9) == [], "no rubric among them"


async def test_a_judgement_inside_a_trace_opens_no_other(traces: Any) -> None:
    with answering(), agents.trace("request") as outer:
        verdict = await make_judge().detect_matched_rule("[MOVEMENT:1]")
    assert verdict.method == "phase1_tag"
    (trace,) = traces.traces()
    assert trace.trace_id == outer.trace_id
    data = stages_in(traces)["judge: phase1_tag"]
    assert (data["instruction"], data["reply"], data["step"]) == ("", "[MOVEMENT:1]", 1)


async def test_the_run_config_controls_what_is_recorded(traces: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = make_judge(rules=["secret rule", "other"])
    with answering(tagged="[MOVEMENT:2] secret"):
        await judge.judge("secret", run_config={"tracing_disabled": True})
        assert traces.traces() == []
        await judge.judge("secret", run_config=RunConfig(trace_include_sensitive_data=False))
        monkeypatch.setenv("OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA", "0")
        await judge.judge("secret")
    assert len(traces.traces()) == 2
    assert stages_in(traces) == {
        "judge: structured_output": {"stage": "structured_output", "decided": False},
        "judge: phase3_tag": {"stage": "phase3_tag", "decided": True},
    }
    assert "secret" not in str([span.raw for span in traces.spans()])


async def test_an_error_that_ends_a_judgement_is_recorded_on_its_stage(traces: Any) -> None:
    refused = Reply(status=400, text="no such model")
    with (
        answering_with(lambda _stage, _request: refused),
        pytest.raises(openai.BadRequestError, match="no such model"),
    ):
        await make_judge().judge("x")
    (span,) = [span for span in traces.spans() if span.name == "judge: structured_output"]
    assert span.error["data"]["error_type"] == "BadRequestError"


async def test_a_trace_without_a_verdict_has_an_error(traces: Any) -> None:
    replies: dict[str, Any] = {"structured": {"step": 9, "reason": ""}}
    replies["evaluation"] = {"matched_index": 9, "reason": ""}
    with answering(**replies), pytest.raises(JudgmentError):
        await make_judge().judge("x")
    assert len(traces.traces(has_error=True)) == 1
    (error,) = [span for span in traces.spans() if span.error]
    assert (error.name, error.error["data"]["code"]) == ("judge: ai_judge", "E44")
