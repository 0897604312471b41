"""Candidates that are refused before they run, and candidates that must not win."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import Usage
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from kantan_agents import Prompt
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.improve.limits import CandidateLimits, markers_of
from kantan_agents.lab.improve.rated import Rated
from kantan_agents.testing import Reply, ScriptedToolCall
from tests.lab.improve.shops import (
    OLD,
    POLITE,
    REFLECTS,
    Shop,
    answer,
    last_text,
    scripted,
    sealed_orders,
    shop,
)

NEW_MARKER = f"{POLITE} Know {{{{ $ctx.secret }}}} and {{{{ $env.HOME }}}}."


BROKEN = {
    "Be polite.": "it lacks the marker {{ $ctx.customer }}",
    NEW_MARKER: "it has the new marker {{ $ctx.secret }}, {{ $env.HOME }}",
    f"{POLITE}{'!' * 3000}": "and at most 2,000 are allowed",
    "  ": "the text is empty",
}


def test_a_text_that_breaks_a_limit_never_runs_and_the_model_reads_why(tmp_path: Path) -> None:
    with shop(tmp_path, propose=scripted(*BROKEN, POLITE)) as made:
        found = made.improve(rounds=len(BROKEN) + 1)
        ran = {line for one in made.server.requests for line in str(one.system_instructions).splitlines()}
        questions = [last_text(one) for one in made.requests_with(REFLECTS)]
    *refused, winner = found.candidates[1:]
    assert len(refused) == len(BROKEN)
    for number, (one, (text, reason)) in enumerate(zip(refused, BROKEN.items(), strict=True)):
        assert one.status == "refused"
        assert reason in str(one.reason)
        assert (one.sample, one.score) == (0.0, None) or one.sample is None
        assert text not in ran
        assert reason in questions[number + 1]
    assert winner.text == POLITE
    assert winner.status == "winner"


def test_a_candidate_that_causes_a_refused_call_does_not_win(tmp_path: Path) -> None:
    generous = f"{OLD} Be polite and generous."
    rules = {"tool_rules": {"deny": ["refund"]}}
    with shop(tmp_path, context=rules, propose=scripted(generous)) as made:
        found = made.improve()
    candidate = found.candidates[1]
    assert found.new is None
    assert candidate.status == "not eligible"
    assert "a call of refund is denied" in str(candidate.reason)
    assert made.ran == []


def test_a_candidate_that_is_refused_only_on_a_sealed_case_does_not_win(tmp_path: Path) -> None:
    sealed: list[str] = []

    def answers(request: Any) -> Any:
        number = last_text(request).split()[-1:]
        if "polite" in str(request.system_instructions) and number == sealed[:1]:
            return ScriptedToolCall("refund", {"number": number[0]})
        return answer(request)

    rules = {"tool_rules": {"deny": ["refund"]}}
    with shop(tmp_path, context=rules, answers=answers) as made:
        sealed += sorted(sealed_orders(made))
        found = made.improve()
    assert found.new is None
    assert found.candidates[1].status == "tested"
    assert str(found.reason).startswith("in the held-out test, a call of refund is denied")
    assert "new-version.md" not in {one.name for one in found.folder.iterdir()}


class Answer(BaseModel):
    """What the agent answers."""

    text: str


def structured(request: Any) -> Any:
    """Answer with a structured output, which is broken if the instructions say so."""
    if "broken" in str(request.system_instructions):
        return '{"txt": 1}'
    greeting = "Dear customer" if "polite" in str(request.system_instructions) else "Hm"
    return {"text": greeting}


def test_a_candidate_with_a_failed_schema_does_not_win(tmp_path: Path) -> None:
    def make(made: Shop) -> Any:
        return made.agent(output_type=Answer)

    broken = f"{OLD} Be polite but broken."
    with shop(tmp_path, make=make, answers=structured, propose=scripted(broken, POLITE)) as made:
        found = made.improve(agent=make(made))
        second = last_text(made.requests_with(REFLECTS)[1])
    bad, good = found.candidates[1:]
    assert bad.status == "not eligible"
    assert "the output does not fit its schema" in str(bad.reason)
    assert good.status == "winner"
    assert "E40" not in second, "the question is about the parent, whose runs were valid"


def test_a_run_that_leaves_the_recording_scores_zero_for_both(tmp_path: Path) -> None:
    def answers(request: Any) -> Any:
        return answer(request)

    with shop(tmp_path, answers=answers, propose=scripted(f"{OLD} Be polite and generous.")) as made:
        found = made.improve()
    candidate = found.candidates[1]
    assert found.new is None
    assert (candidate.status, candidate.sample, candidate.score) == ("rejected", 0.0, None)


def test_a_candidate_whose_runs_cost_too_much_does_not_win(tmp_path: Path) -> None:
    def answers(request: Any) -> Any:
        reply = answer(request)
        if not isinstance(reply, str) or "polite" not in str(request.system_instructions):
            return reply
        return Reply(reply, usage=Usage(input_tokens=90, output_tokens=5, total_tokens=95))

    with shop(tmp_path, answers=answers) as made:
        found = made.improve()
    assert found.new is None
    assert found.candidates[1].status == "not eligible"
    assert "its runs use" in str(found.candidates[1].reason)
    assert "is not eligible, because its runs use" in str(found.reason)


TEXTS = st.text(alphabet=st.sampled_from("ab {}$.\n"), max_size=20)
PATHS = st.lists(st.sampled_from(["ctx.a", "ctx.b.c", "env.HOME"]), max_size=4)


@given(TEXTS, PATHS, PATHS)
def test_a_text_passes_exactly_if_its_markers_are_the_same(text: str, old: list[str], new: list[str]) -> None:
    def written(paths: list[str], space: str) -> str:
        return "Do it. " + " ".join(f"{{{{{space}${path}{space}}}}}" for path in paths)

    limits = CandidateLimits.of(Prompt("p", "v1", written(old, " ")), None, 0.2)
    problem = limits.problem(written(new, "") + " now")
    assert (problem is None) == (set(old) == set(new))
    assert set(markers_of(written(old, " "))) == set(markers_of(written(old, "")))


def test_a_literal_prompt_has_no_markers_to_keep() -> None:
    limits = CandidateLimits.of(Prompt("p", "v1", "Say {{ $ctx.a }}.", literal=True), None, 0.2)
    assert limits.markers == ()
    assert limits.problem("Say it.") is None


def test_a_limit_below_the_old_length_is_an_error() -> None:
    with pytest.raises(InvalidOptionError, match="has 6 characters already"):
        CandidateLimits.of(Prompt("p", "v1", "Do it."), 5, 0.2)


def test_only_what_the_old_version_had_not_counts_against_a_candidate() -> None:
    limits = CandidateLimits.of(Prompt("p", "v1", "Do it."), None, 0.2)
    refused = {"a": Rated("a", 0.0, "changed", refused=("x",))}
    invalid = {"a": Rated("a", 0.0, "failed", is_invalid=True)}
    assert limits.obstacle({}, refused) is not None
    assert limits.obstacle(refused, refused) is None
    assert limits.obstacle({}, invalid) is not None
    assert limits.obstacle(invalid, invalid) is None


@pytest.mark.parametrize(("tokens", "is_eligible"), [(120, True), (121, False)])
def test_the_limit_of_use_is_inclusive(tokens: int, is_eligible: bool) -> None:
    limits = CandidateLimits.of(Prompt("p", "v1", "Do it."), None, 0.2)
    old = {"a": Rated("a", 0.0, "same", input_tokens=100), "b": Rated("b", 0.0, "diverged", input_tokens=9)}
    new = {
        "a": Rated("a", 0.0, "wording", input_tokens=tokens),
        "b": Rated("b", 0.0, "same", input_tokens=999),
    }
    assert (limits.obstacle(old, new) is None) == is_eligible
