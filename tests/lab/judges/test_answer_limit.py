"""Judges have a limit on their answers, and a verdict that was cut off does not count."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agents import ModelSettings

from kantan_agents import RUBRIC, Agent, JudgmentError, Prompt, StatusJudge
from kantan_agents.lab import Evaluator
from kantan_agents.lab.evaluation.evaluators import judged, judges, pairwise, status
from kantan_agents.middleware import Fallback
from kantan_agents.support.own_calls import MOST_TOKENS
from kantan_agents.testing import OfflineServer, RecordedRequest, Reply, ScriptedModel
from tests.lab.evaluation.values import finished

PROMPT = Prompt("support", "v1", "Answer.")
EVERY = {"score": 1, "comments": ["good"], "reason": "r", "passes": True, "winner": "A"}
RATED = {"score": 1, "comments": ["good"]}
GATEWAY = {"message": "Provider returned error", "metadata": {"raw": "max_tokens: 8192 > 4096"}}
BOTH_APIS = pytest.mark.parametrize("api", ["responses", "chat"])


def limit_of(body: dict[str, Any]) -> Any:
    return body.get("max_output_tokens", body.get("max_tokens"))


async def error_of(judge: Evaluator) -> str:
    (score,) = (await judge.score(finished("x"))).values()
    assert score.value is None
    return str(score.error)


async def test_every_judge_asks_for_a_limited_answer_unless_its_settings_say_otherwise() -> None:
    rubric = Agent("mine", "Rate.", output_type=RUBRIC)

    def answer(request: RecordedRequest) -> Any:
        return {"step": 1, "reason": "r"} if "step" in str(request.body["text"]) else EVERY

    with OfflineServer(answer) as server:
        model = server.bundle()
        for options, limit in (
            ({}, MOST_TOKENS),
            ({"model_settings": ModelSettings(max_tokens=900)}, 900),
            ({"model_settings": ModelSettings(extra_args={"max_output_tokens": 7})}, 7),
        ):
            given: dict[str, Any] = {"model": model, **options}
            for judge in (
                judged(PROMPT, **given),
                judged(rubric.clone(**given)),
                judges.harmlessness(**given),
                status(["It is done."], passing=["It is done."], **given),
            ):
                (score,) = (await judge.score(finished("x"))).values()
                assert score.value == 1.0, score
            await pairwise(**given).compare(finished("x"), finished("y"))
            assert [limit_of(one.body) for one in server.requests] == [limit] * 6
            server.requests.clear()


@BOTH_APIS
@pytest.mark.parametrize("text", [json.dumps(RATED), '{"comments": ["bad"], "score": 1', "Let me think"])
async def test_a_verdict_that_is_cut_off_is_a_failed_score_whatever_it_says_so_far(
    text: str, api: Any
) -> None:
    with OfflineServer(lambda _request: Reply(text, is_cut=True)) as server:
        model = server.bundle(api=api)
        for judge in (
            judged(PROMPT, model=model),
            judged(Agent("a", "Rate.", model=model, output_type=RUBRIC)),
        ):
            assert "[E206]" in (error := await error_of(judge))
            assert "cut off at 8,192 tokens, so it is not used. Raise max_tokens" in error
        assert len(server.requests) == 2  # it is not asked to repair it


@BOTH_APIS
async def test_parts_that_are_cut_off_are_no_share(api: Any) -> None:
    whole = {
        "parts": [{"part": "p", "reason": "r", "holds": True}, {"part": "q", "reason": "r", "holds": False}]
    }
    with OfflineServer([Reply(json.dumps(whole)[:60], is_cut=True)]) as server:
        judge = judges.groundedness(model=server.bundle(api=api), sources=lambda _finished: ["s"])
        assert "[E206]" in await error_of(judge)


@BOTH_APIS
async def test_a_tag_in_a_reply_that_is_cut_off_decides_nothing(api: Any) -> None:
    replies = [Reply("Is it [MOVEMENT:1]", is_cut=True)] * 2 + [{"matched_index": 2, "reason": "r"}]
    with OfflineServer([*replies, *replies[:2], Reply("{", is_cut=True)]) as server:
        judge = StatusJudge(["It is done.", "It is not."], model=server.bundle(api=api))
        verdict = await judge.judge("x")
        assert (verdict.step, verdict.method) == (2, "ai_judge")
        assert [one.problem for one in verdict.attempts[:2]] == ["the reply was cut off at 8,192 tokens"] * 2
        assert verdict.attempts[0].reply == "Is it [MOVEMENT:1]" and verdict.attempts[0].usage is not None
        with pytest.raises(JudgmentError, match="cut off at 8,192 tokens"):
            await judge.judge("x")


async def test_a_provider_that_refuses_the_limit_is_asked_without_one_from_then_on() -> None:
    def answer(request: Any) -> Any:
        if limit_of(request.body) is not None:
            return Reply("Unsupported parameter: 'max_tokens'; use 'max_completion_tokens'.", status=400)
        return RATED

    with OfflineServer(answer) as server:
        judge = judged(PROMPT, model=server.bundle(api="chat"))
        for _ in range(2):
            assert (await judge.score(finished("x")))["judge"].value == 1.0
        assert limit_of(server.requests[-1].body) is None
        refused = sum(limit_of(one.body) is not None for one in server.requests)
        assert 1 <= refused == len(server.requests) - 2

    with OfflineServer(lambda _request: Reply("There is no such model.", status=400)) as server:
        assert "no such model" in await error_of(judged(PROMPT, model=server.bundle()))


@pytest.mark.parametrize(
    "refusal",
    [
        Reply("The maximum tokens you requested exceeds the model limit of 4096.", status=400),
        Reply("too many tokens: max tokens must be less than or equal to 4096", status=400),
        Reply(status=400, body=json.dumps({"error": GATEWAY}).encode()),
    ],
)
async def test_a_refusal_is_known_by_the_words_of_each_provider(refusal: Reply) -> None:
    with OfflineServer(lambda one: RATED if limit_of(one.body) is None else refusal) as server:
        assert (await judged(PROMPT, model=server.bundle()).score(finished("x")))["judge"].value == 1.0


async def test_one_conversation_that_is_too_long_does_not_end_the_limit_of_the_others() -> None:
    too_long = Reply("maximum context length is 10 tokens", status=400)

    with OfflineServer(lambda one: too_long if "long" in str(one.body["input"]) else RATED) as server:
        judge = judged(PROMPT, model=server.bundle())
        assert (await judge.score(finished("long")))["judge"].value is None
        assert (await judge.score(finished("x")))["judge"].value == 1.0
        assert limit_of(server.requests[-1].body) == MOST_TOKENS


async def test_a_limit_is_not_taken_for_that_of_the_user_when_another_model_is_asked() -> None:
    refused = Reply("max_tokens is not supported", status=400)

    with (
        OfflineServer(lambda _one: Reply("down", status=503)) as down,
        OfflineServer(lambda one: RATED if limit_of(one.body) is None else refused) as other,
    ):
        judge = judged(PROMPT, model=down.bundle(), middleware=[Fallback(other.bundle())])
        assert (await judge.score(finished("x")))["judge"].value == 1.0


async def test_the_limit_changes_no_version_and_the_copy_notifies_the_same_handlers() -> None:
    agent = Agent("mine", "Rate.", model=ScriptedModel([RATED]), output_type=RUBRIC)
    judge = judged(agent)
    seen: list[str] = []
    with agent.subscribe(lambda event: seen.append(event.type)):
        await judge.score(finished("x"))
    assert "run_started" in seen
    assert judge.version == judged(agent.clone()).version
