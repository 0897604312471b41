"""A score that is not on its scale is missing, with a reason, and counts in no mean."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from kantan_agents import RUBRIC, Agent, Prompt, TraceStore, judge_agent
from kantan_agents.errors import InvalidOptionError, StructuredOutputError
from kantan_agents.lab import Case, Dataset, evaluate_async, evaluator
from kantan_agents.lab.evaluation.evaluators import judged
from kantan_agents.testing import OfflineServer, ScriptedModel
from tests.lab.evaluation.values import finished

PROMPT = Prompt("support", "v1", "Answer.")
STORED = "526e20fd1489141a"
"""The version of ``judged(PROMPT)`` in databases from before there were scales."""


def reply(score: str) -> str:
    return f'{{"score": {score}, "comments": []}}'


def model(*texts: str) -> ScriptedModel:
    return ScriptedModel(list(texts))


def sent_score(request: Any) -> dict[str, Any]:
    found: dict[str, Any] = request.body["text"]["format"]["schema"]["properties"]["score"]
    return found


@pytest.mark.parametrize("score", ["NaN", "Infinity", "-Infinity", "1e999", "true", '"0.5"', "null", "[1]"])
async def test_what_is_not_a_finite_number_is_no_rubric(score: str, traces: Any) -> None:
    critic = Agent("critic", PROMPT, model=model(*[reply(score)] * 4), output_type=RUBRIC)
    with pytest.raises(StructuredOutputError, match="score"):
        await critic.run_async("x")
    (stats,) = TraceStore(traces.path).prompts()
    assert (stats.scores, stats.mean_score) == (0, None)


async def test_the_bounds_are_in_the_schema_and_a_score_outside_is_asked_for_again() -> None:
    answers = iter([{"score": 300, "comments": []}, {"score": 7, "comments": []}])
    with OfflineServer(lambda _request: next(answers)) as server:
        critic = Agent("critic", "Score it.", model=server.bundle(), output_type=RUBRIC.between(0, 10))
        context = await critic.run_async("x")
        assert context["result"].final_output.score == 7.0
        first, _again = server.requests
        assert (sent_score(first)["minimum"], sent_score(first)["maximum"]) == (0, 10)


async def test_the_standard_judge_keeps_to_0_to_1_in_statistics_too(traces: Any) -> None:
    for score in ("0.5", "300", "300"):
        judge = judge_agent(PROMPT, model=model(*[reply(score)] * 4))
        if score == "0.5":
            await judge.run_async("x")
        else:
            with pytest.raises(StructuredOutputError, match="less than or equal to 1"):
                await judge.run_async("x")
    (stats,) = TraceStore(traces.path).prompts()
    assert (stats.scores, stats.mean_score) == (1, 0.5)


async def test_a_judge_on_another_scale_says_so() -> None:
    with OfflineServer(lambda _request: {"score": 4, "comments": []}) as server:
        judge = judged(PROMPT, model=server.bundle(), scale=(1, 5))
        assert (await judge.score(finished("x")))["judge"].value == 4.0
        (request,) = server.requests
    assert judge.scale == (1, 5)
    assert (sent_score(request)["minimum"], sent_score(request)["maximum"]) == (1, 5)
    assert "The score is from 1 to 5." in str(request.system_instructions)


class Detailed(BaseModel):
    score: float = Field(description="how good")
    comments: list[str]
    tone: str = "plain"


@dataclasses.dataclass
class AsDataclass:
    score: float
    comments: list[str]


class Bounded(BaseModel):
    score: float = Field(ge=0)
    comments: list[str]


async def test_an_agent_can_be_given_a_scale() -> None:
    with OfflineServer(lambda _request: {"score": 11, "comments": [], "tone": "x"}) as server:
        critic = Agent("critic", "Score it.", model=server.bundle(), output_type=Detailed)
        (score,) = (await judged(critic, scale=(0, 10)).score(finished("x"))).values()
        assert sent_score(server.requests[0])["description"] == "how good"
    assert score.value is None and "less than or equal to 10" in str(score.error)


@pytest.mark.parametrize("rubric", [AsDataclass, Bounded])
def test_a_type_that_cannot_have_a_scale_is_refused(rubric: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"Annotated\[float, Field\(ge=0, le=1\)\]"):
        judge_agent(PROMPT, rubric, scale=(0, 1))


@pytest.mark.parametrize("scale", [(1, 0), (0, float("inf")), (0,), "01", (False, True), 1])
def test_a_scale_must_be_two_numbers(scale: Any) -> None:
    for use in (
        lambda: judged(PROMPT, scale=scale),
        lambda: judge_agent(PROMPT, scale=scale),
        lambda: evaluator(lambda _finished: 1, name="n", version="1", scale=scale),
    ):
        with pytest.raises(InvalidOptionError, match="such as"):
            use()


def test_the_standard_scale_changes_no_version() -> None:
    assert (
        judged(PROMPT).version == judged(PROMPT, scale=(0, 1)).version != judged(PROMPT, scale=(0, 2)).version
    )
    assert judged(PROMPT).version == STORED
    critic = Agent("critic", "Score it.", output_type=RUBRIC)
    assert judged(critic).version == judged(critic, scale=(0, 1)).version


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (300, "300 is not on the scale from 0 to 1"),
        (-0.5, "-0.5 is not on the scale from 0 to 1"),
        (float("nan"), "nan is not a finite number"),
        ("1", "a label needs a value"),
    ],
)
async def test_a_score_of_code_outside_has_failed(value: Any, reason: str) -> None:
    @evaluator(scale=(0, 1), version="1")
    def rate(_finished: Any) -> Any:
        return {"a": value, "b": 1}

    scores = await rate.score(finished("x"))
    assert scores["rate.a"].value is None and reason in str(scores["rate.a"].error)
    assert scores["rate.b"].value == 1.0


async def test_a_score_that_is_outside_by_rounding_alone_is_the_end_of_the_scale() -> None:
    rate = evaluator(lambda _finished: {"a": 1.0000001, "b": -1e-9}, name="r", version="1", scale=(0, 1))
    scores = await rate.score(finished("x"))
    assert (scores["r.a"].value, scores["r.b"].value) == (1.0, 0.0)


def test_a_verdict_on_a_scale_can_be_pickled() -> None:
    verdict = RUBRIC.between(0, 10)(score=3, comments=["good"])
    assert pickle.loads(pickle.dumps(verdict)) == verdict


class Loose(BaseModel):
    score: float
    comments: list[str]


async def test_a_score_that_the_type_of_a_user_lets_through_has_failed_with_a_reason() -> None:
    critic = Agent("critic", "Score it.", model=model(reply("NaN")), output_type=Loose)
    (score,) = (await judged(critic).score(finished("x"))).values()
    assert score.value is None and "no finite number" in str(score.error)


async def test_a_stored_score_outside_of_the_scale_is_given_again(tmp_path: Path, traces: Any) -> None:
    values = iter([300.0, 0.5, 0.75])

    def rate(_finished: Any) -> float:
        return next(values)

    agent = Agent("a", "Help.", model=model("x", "y"))
    dataset = Dataset("d", [Case("one", id="1"), Case("two", id="2")])
    for scale, mean in ((None, 150.25), ((0, 1), 0.625), ((0, 1), 0.625)):
        rated = evaluator(rate, version="1", scale=scale)
        found = await evaluate_async(agent, dataset, rated, name="e", store=traces.path, concurrency=1)
        assert found[found.variants[0]].mean("rate") == mean
