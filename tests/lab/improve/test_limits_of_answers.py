"""A judge that is off its scale, a reflection model without an end, and why candidates were not chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import ModelSettings

from kantan_agents import RUBRIC, Agent, Prompt
from kantan_agents.errors import (
    InvalidOptionError,
    JudgeFailedError,
    ReflectionFailedError,
    WorkingFolderError,
)
from kantan_agents.lab import evaluator
from kantan_agents.support.own_calls import MOST_TOKENS
from kantan_agents.testing import Reply
from tests.lab.improve.shops import (
    JUDGES,
    OLD,
    POLITE,
    REFLECTS,
    Shop,
    answer,
    journal_of,
    proposal,
    scripted,
    shop,
)

ODD = tuple(f"order {number} is" for number in (1, 3, 5, 7, 9))


def critic(made: Shop) -> Agent[Any]:
    prompt = Prompt("critic", "v1", f"{JUDGES} from 0 to 1.")
    return Agent("critic", prompt, model=made.server.bundle("judge-model"), output_type=RUBRIC)


def polite(text: str) -> float:
    return float("Dear customer" in text)


def limits_of(requests: list[Any]) -> list[Any]:
    return [one.body["max_output_tokens"] for one in requests]


@pytest.mark.parametrize("by_agent", [False, True])
def test_a_score_off_the_scale_is_missing_and_the_search_goes_on(tmp_path: Path, by_agent: bool) -> None:
    with shop(tmp_path) as made:

        def respond(request: Any) -> Any:
            is_odd = any(one in str(request.input) for one in ODD)
            if is_odd and JUDGES in str(request.system_instructions):
                return {"score": 300.0, "comments": []}
            return made.reply(request)

        made.respond = respond
        found = made.improve(judge=critic(made) if by_agent else made.judge())
        requests = [str(one.body) for one in made.requests_with(JUDGES)]
    rated = [one["rated"] for one in journal_of(found) if "rated" in one]
    missing = [one for one in rated if one["unscored"]]
    assert 0 < len(missing) < len(rated) / 2
    assert {one["value"] for one in missing} == {0.0}
    reason = "less than or equal to 1" if by_agent else "InvalidScore: 300 is not on the scale from 0 to 1"
    assert reason in missing[0]["unscored"]
    assert all(("'maximum': 1" in one) is by_agent for one in requests)
    assert found.comparison is not None
    assert set(found.comparison.failed_scores["judge"]) == {"v1", "v2"}


def test_a_judge_that_is_off_its_scale_most_of_the_time_ends_the_search_and_is_asked_again(
    tmp_path: Path,
) -> None:
    with shop(tmp_path, score=lambda _text: 7.0) as made:
        with pytest.raises(
            JudgeFailedError, match="7 is not on the scale from 0 to 1; more than half"
        ) as raised:
            made.improve()
        assert "set perfect (--perfect) to its best score" in str(raised.value)
        asked = len(made.requests_with(JUDGES))
        assert asked <= 3 * 7, "not about every run"
        made.score, runs = polite, len(made.requests_with("about orders"))
        found = made.improve()
        again = len(made.requests_with("about orders")) - runs
    assert found.new is not None
    assert again <= 2 * 2 * (found.cases["test"] + found.cases["validation"]) + 2 * 3, "no run was made twice"
    assert found.tokens >= 15 * (asked + again)


def test_the_best_score_is_that_of_the_scale_of_the_judge(tmp_path: Path) -> None:
    def rate(finished: Any) -> float:
        return 9.0 * polite(finished.text) + 1

    with shop(tmp_path) as made:
        found = made.improve(judge=evaluator(rate, name="judge", version="1", scale=(0, 10)))
        assert [one.score for one in found.candidates] == [1.0, 10.0]
        for scale, perfect in (((0, 10), 11), ((-1, 1), None)):
            with pytest.raises(InvalidOptionError, match="the scale of 'judge'"):
                made.improve(judge=evaluator(rate, name="judge", version="1", scale=scale), perfect=perfect)


def test_a_reflection_model_without_an_end_ends_the_search_at_once(tmp_path: Path) -> None:
    with shop(tmp_path, propose=lambda _question, _number: Reply("and on and on", is_cut=True)) as made:
        with pytest.raises(ReflectionFailedError, match="set max_tokens or a timeout in reflection_settings"):
            made.improve(rounds=10)
        requests = made.requests_with(REFLECTS)
        assert limits_of(requests) == [MOST_TOKENS + 2_000] * 2
        made.propose = scripted(POLITE)
        made.server.requests.clear()
        found = made.improve(rounds=10, reflection_settings=ModelSettings(max_tokens=99))
        assert limits_of(made.requests_with(REFLECTS)) == [99]
    assert found.new is not None, "the failed replies are not kept"


def test_a_reflection_model_that_never_answers_ends_the_search_at_once(tmp_path: Path) -> None:
    late = ModelSettings(extra_args={"timeout": 0.05})
    failed = pytest.raises(ReflectionFailedError, match=r"cut off at 0\.05 seconds")
    with shop(tmp_path, propose=lambda _question, _number: Reply("late", delay=60)) as made, failed:
        made.improve(reflection_settings=late)


def test_one_reply_without_an_end_costs_a_round_if_others_had_one(tmp_path: Path) -> None:
    def propose(_question: str, number: int) -> Any:
        return proposal(f"{OLD} Be brief.") if number == 1 else Reply("and on", is_cut=True)

    with shop(tmp_path, propose=propose) as made:
        found = made.improve(rounds=3)
    assert found.rounds == 3
    assert "2 of 3 replies of the reflection model were not a new version" in str(found.reason)


def test_settings_of_the_reflection_model_other_than_limits_are_part_of_the_search(tmp_path: Path) -> None:
    with shop(tmp_path) as made:
        made.improve(reflection_settings=ModelSettings(max_tokens=900))
        made.improve(reflection_settings=ModelSettings(extra_args={"timeout": 60}))
        with pytest.raises(WorkingFolderError, match="other arguments"):
            made.improve(reflection_settings=ModelSettings(temperature=1.0))
        with pytest.raises(InvalidOptionError, match="must be ModelSettings"):
            made.improve(reflection_settings={"max_tokens": 9})


def test_every_candidate_says_why_it_was_not_chosen(tmp_path: Path) -> None:
    brief, kind = f"{OLD} Be brief.", f"{OLD} Be kind."

    def answers(request: Any) -> Any:
        said = answer(request)
        is_kind = isinstance(said, str) and "kind" in str(request.system_instructions)
        return f"Friend: {said}" if is_kind else said

    def score(text: str) -> float:
        return 0.5 if "Friend" in text else polite(text)

    with shop(tmp_path, answers=answers, score=score, propose=scripted(brief, kind, POLITE)) as made:
        found = made.improve(rounds=4)
    assert [(one.status, one.reason) for one in found.candidates] == [
        ("old", None),
        ("rejected", "it has 0 on the cases that it was made from, no more than version 0 with 0"),
        ("behind", "candidate 3 has 1 on the validation cases, and it has 0.5"),
        ("winner", None),
    ]
