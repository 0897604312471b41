"""How many requests a judgement sends, and what it reports about them."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from agents import OpenAIChatCompletionsModel

from kantan_agents import JudgmentError, StatusJudge, StatusVerdict
from kantan_agents.middleware import Fallback
from kantan_agents.testing import OfflineServer, RecordedRequest, Reply, ScriptedToolCall
from tests.lab.judges.stage_server import RULES, STRUCTURED, TAGGED, stage_of
from tests.models.structured.form_server import FormServer

SECOND = {"step": 2, "reason": "two are red"}
_NUMBERS = count(1)


def judge_on(server: OfflineServer, **options: Any) -> StatusJudge:
    # What works is remembered by model, so each test has a model of its own.
    return StatusJudge(RULES, model=server.bundle(f"judge-{next(_NUMBERS)}"), **options)


async def undecided(judge: StatusJudge, server: OfflineServer) -> int:
    """Return the number of requests of a judgement that decides nothing."""
    server.requests.clear()
    with pytest.raises(JudgmentError):
        await judge.judge("...")
    return len(server.requests)


@pytest.mark.parametrize("profile", ["openai", "google", "anthropic", "deepseek", "ignoring", None])
async def test_an_undecided_judgement_sends_three_requests(profile: str | None) -> None:
    with OfflineServer(lambda _request: "I cannot say.", profile=profile) as server:
        judge = judge_on(server)
        for _ in range(6):
            assert await undecided(judge, server) == 3


async def test_a_provider_refuses_a_form_only_in_the_first_judgement() -> None:
    with OfflineServer(lambda _request: "I cannot say.", profile="plain") as server:
        judge = judge_on(server)
        # It refuses the schema, the tool and the JSON mode once: both stages share what is known.
        assert await undecided(judge, server) == 6
        assert await undecided(judge, server) == 3


async def test_a_decided_judgement_sends_one_request_in_the_form_that_is_known_to_work() -> None:
    def refuse(form: str) -> Any:
        return (400, "output_config.format: Extra inputs are not permitted") if form == "native" else None

    with FormServer("anthropic", SECOND, refuse) as server:
        provider = server.provider()
        for _ in range(2):
            verdict = await StatusJudge(RULES, model=provider).judge("...")
            assert (verdict.step, verdict.method) == (2, "structured_output")
    assert server.forms == ["native", "forced tool", "forced tool"]


async def test_a_form_that_the_model_ignores_is_replaced_in_later_stages_and_judgements() -> None:
    def reply(request: RecordedRequest) -> Any:
        if not request.body.get("tools"):
            return "It looks fine to me."
        number = "step" if stage_of(request) == STRUCTURED else "matched_index"
        return ScriptedToolCall("final_answer", {number: 2, "reason": "r"})

    with OfflineServer(reply) as server:
        judge = judge_on(server)
        first = await judge.judge("...")
        assert (first.method, len(server.requests)) == ("ai_judge", 3)
        assert [attempt.mode for attempt in first.attempts] == ["native", None, "tool"]
        server.requests.clear()
        second = await judge.judge("...")
        assert (second.method, len(server.requests)) == ("structured_output", 1)


async def test_repairs_are_sent_if_they_are_requested() -> None:
    replies: Any = iter([{"step": "two", "reason": "r"}, SECOND])
    with OfflineServer(lambda _request: next(replies)) as server:
        verdict = await judge_on(server, output_repairs=1).judge("...")
        assert (verdict.step, len(server.requests)) == (2, 2)


async def test_each_attempt_names_model_mode_and_usage() -> None:
    def reply(request: RecordedRequest) -> Any:
        return {"matched_index": 2, "reason": "r"} if stage_of(request) not in (STRUCTURED, TAGGED) else "no"

    with OfflineServer(reply) as server:
        model = OpenAIChatCompletionsModel("judge-model", server.bundle().client)
        verdict = await StatusJudge(RULES, model=model).judge("...")
    assert [attempt.model for attempt in verdict.attempts] == ["judge-model"] * 3
    assert [attempt.mode for attempt in verdict.attempts] == ["native", None, "tool"]
    for attempt in verdict.attempts:
        assert attempt.usage is not None
        assert attempt.usage["requests"] == 1
        assert attempt.usage["total_tokens"] == attempt.usage["input_tokens"] + attempt.usage["output_tokens"]
        assert attempt.usage["total_tokens"] > 0


async def test_an_attempt_names_the_model_that_replied() -> None:
    down = Reply(status=401, text="no")
    with (
        OfflineServer(lambda _request: down) as first,
        OfflineServer(lambda _request: SECOND) as second,
    ):
        spare = OpenAIChatCompletionsModel("spare", second.bundle().client)
        verdict = await judge_on(first, middleware=[Fallback(spare)]).judge("...")
    (attempt,) = verdict.attempts
    assert (attempt.model, attempt.mode) == ("spare", "native")


async def test_an_attempt_without_a_model_names_none() -> None:
    with OfflineServer([]) as server:
        verdict = await judge_on(server).detect_matched_rule("[MOVEMENT:1]")
    (attempt,) = verdict.attempts
    assert (attempt.model, attempt.mode, attempt.usage) == (None, None, None)


async def test_a_verdict_has_the_tag_of_its_rule() -> None:
    with OfflineServer(lambda _request: SECOND) as server:
        assert (await judge_on(server).judge("...")).tag == "[MOVEMENT:2]"
        verdict = await judge_on(server, tag="\u30ab\u3099").judge("...")
        assert verdict.tag == "[\u30ac:2]"
        assert "[\u30ac:3]" in server.requests[-1].body["instructions"]
        found = await judge_on(server, tag="review.v2").detect_matched_rule("So: [review.v2:3]")
        assert found.tag == "[review.v2:3]"
    assert StatusVerdict(1, verdict.rule, "ai_judge").tag == "[MOVEMENT:2]"
