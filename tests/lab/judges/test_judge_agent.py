"""``judge_agent``: judges of a prompt, and where their scores are recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import agents
import pytest
from kantan_llm.tracing import TraceQuery
from kantan_llm.tracing.analysis import find_failed_judges
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from kantan_agents import RUBRIC, Agent, Prompt, TraceStore, judge_agent
from kantan_agents.errors import InvalidOptionError
from kantan_agents.models.rubric import rubric_of
from kantan_agents.testing import ScriptedModel, assistant_message
from tests.lab.judges.stage_server import answering_with, bundle, instructions_of

PROMPT = Prompt("support", "v1", "Help {{ $ctx.name }}.\n```\nBe brief.\n```", meta={"owner": "a"})


class Detailed(RUBRIC):
    tone: str = Field(description="friendly, neutral or harsh")


@dataclass
class AsDataclass:
    score: float
    comments: list[str]


class AsTypedDict(TypedDict):
    score: float
    comments: list[str]


def verdict(score: float, **more: Any) -> dict[str, Any]:
    return {"score": score, "comments": ["tone harsh"], **more}


def scripted(*replies: Any) -> Any:
    waiting = iter(replies)
    return answering_with(lambda _stage, _request: next(waiting))


def scripted_model(*texts: str) -> Any:
    return ScriptedModel([[assistant_message(text)] for text in texts])


async def test_scores_are_found_under_the_judged_prompt(traces: Any) -> None:
    with scripted(verdict(0.2), verdict(0.9)):
        judge = judge_agent(PROMPT, model=bundle())
        await judge.run_async("Figure it out.")
        other = judge_agent(Prompt("support", "v2", "Help kindly."), model=bundle())
        await other.run_async("Of course!")
    store = TraceStore(traces.path)
    for query, scores in (
        ({"prompt_name": "support", "prompt_version": "v1"}, [0.2]),
        ({"prompt_name": "support", "prompt_id": PROMPT.resolve_id()}, [0.2]),
        ({"prompt_name": "support"}, [0.9, 0.2]),
        ({"prompt_name": "other"}, []),
    ):
        found = find_failed_judges(store, 1, trace_query=TraceQuery(metadata=query))
        assert [(span.rubric or {})["score"] for span in found] == scores
    (failed,) = store.failed(0.5, prompt="support", version="v1")
    assert (failed.rubric or {})["score"] == 0.2
    (trace,) = store.traces(agent="support-judge", version="v1")
    assert trace.metadata["prompt_meta_owner"] == "a"


@pytest.mark.parametrize("opened", [False, True])
async def test_prompt_statistics_count_verdicts_but_not_judge_runs(traces: Any, opened: bool) -> None:
    async def work() -> None:
        for _ in range(2):
            await Agent("support", PROMPT, model=bundle()).run_async("How?")
        for _ in range(2):
            await judge_agent(PROMPT, model=bundle()).run_async("A: Somehow.")

    with scripted("Somehow.", "Anyhow.", verdict(0.25), verdict(0.75)):
        if opened:
            with agents.trace("request"):
                await work()
        else:
            await work()
    (stats,) = TraceStore(traces.path).prompts()
    assert (stats.prompt_name, stats.prompt_version) == ("support", "v1")
    assert (stats.runs, stats.scores, stats.mean_score, stats.total_tokens) == (2, 2, 0.5, 30)


async def test_verdicts_count_where_the_judged_runs_are_not_in_the_file(traces: Any) -> None:
    await judge_agent(PROMPT, model=scripted_model('{"score": 0.5, "comments": []}')).run_async("x")
    store = TraceStore(traces.path)
    (stats,) = store.prompts("support")
    assert (stats.runs, stats.failures, stats.scores, stats.mean_score) == (0, 0, 1, 0.5)
    assert stats.first_run is None
    assert store.prompts("other") == []


async def test_a_judge_may_name_the_trace_it_judges(traces: Any) -> None:
    await Agent("support", PROMPT, model=scripted_model("Somehow.")).run_async("How?")
    store = TraceStore(traces.path)
    answer = store.trace("LAST").summary.trace_id
    judge = judge_agent(
        PROMPT,
        model=scripted_model('{"score": 0.5, "comments": []}'),
        metadata=lambda context: {"judged_trace_id": context["judged"], "judge_prompt_id": "not taken"},
    )
    await judge.run_async("x", {"judged": answer})
    (span,) = store.failed(1)
    assert store.judged(span.trace_id) == answer
    assert len(store.trace(span.trace_id).summary.metadata["judge_prompt_id"]) == 64
    (stats,) = store.prompts()
    assert (stats.runs, stats.scores) == (1, 1)


async def test_the_judge_sees_the_unrendered_prompt_and_the_fields_of_the_rubric() -> None:
    with scripted(verdict(0.2, tone="harsh")) as server:
        judge = judge_agent(
            PROMPT, Detailed, model=bundle(), instructions="Judge for {{ $ctx.name }}, from 0 to 5."
        )
        context = await judge.run_async("x", {"name": "Ada"})
    instructions = instructions_of(server.requests[0])
    assert instructions.startswith("Judge for Ada, from 0 to 5.\n")
    assert f"````\n{PROMPT.text}\n````" in instructions
    assert (
        "- score (number)\n- comments (array)\n- tone (string): friendly, neutral or harsh\n" in instructions
    )
    assert context["result"].final_output.tone == "harsh"


@pytest.mark.parametrize(
    ("language", "text"), [("en", "You evaluate answers."), ("ja", "あなたは回答を評価します")]
)
async def test_both_languages_have_instructions(language: Any, text: str) -> None:
    judge = judge_agent(PROMPT, model=scripted_model(), language=language)
    assert (await judge.render({})).startswith(text)


PLAIN = '{"score": 0.5, "comments": []}'


async def test_any_type_with_score_and_comments_is_a_rubric() -> None:
    rubrics: dict[Any, str] = {
        RUBRIC: PLAIN,
        Detailed: '{"score": 0.5, "comments": [], "tone": "x"}',
        AsDataclass: '{"response": {"score": 0.5, "comments": []}}',
        AsTypedDict: PLAIN,
    }
    for rubric, reply in [*rubrics.items(), (agents.AgentOutputSchema(RUBRIC), PLAIN)]:
        judge = judge_agent(PROMPT, rubric, model=scripted_model(reply))
        assert "- score (number)\n- comments (array)\n" in await judge.render({})
        context = await judge.run_async("x")
        recorded = rubric_of(context["result"].final_output, getattr(rubric, "output_type", rubric))
        assert (recorded or {})["score"] == 0.5


class NoComments(BaseModel):
    score: float


@pytest.mark.parametrize("rubric", [None, str, int, NoComments, dict, object, len, {"type": "array"}])
def test_a_rubric_without_score_and_comments_is_an_error(rubric: Any) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        judge_agent(PROMPT, rubric, model=scripted_model())
    assert caught.value.option == "rubric"


@pytest.mark.parametrize(
    ("option", "arguments"),
    [
        ("prompt", {"prompt": "Help."}),
        ("language", {"language": "fr"}),
        ("instructions", {"instructions": " "}),
        ("instructions", {"instructions": 5}),
        ("output_type", {"output_type": RUBRIC}),
        ("metadata", {"metadata": 5}),
    ],
)
def test_an_invalid_option_is_an_error_that_names_it(option: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        judge_agent(**{"prompt": PROMPT, "model": scripted_model(), **arguments})
    assert caught.value.option == option
