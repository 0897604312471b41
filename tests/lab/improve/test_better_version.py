"""From recorded failures to a new version of the prompt."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path

import anyio
from agents import ModelSettings, SQLiteSession, trace

from kantan_agents import Prompt, Rollout
from kantan_agents.lab import Cohort, improve_async
from kantan_agents.lab.evaluation.evaluators import tokens
from kantan_agents.lab.experiment.prices import Prices
from kantan_agents.lab.improve.parts import SPLIT, parts_of
from kantan_agents.traces import registry
from kantan_agents.traces.store.experiment_keys import EXPERIMENT_KEY
from tests.lab.improve.shops import (
    JUDGES,
    OLD,
    POLITE,
    REFLECTS,
    Shop,
    last_text,
    scripted,
    sealed_orders,
    shop,
    shop_after_search,
)


def test_failures_lead_to_a_version_that_is_shown_to_be_better(tmp_path: Path) -> None:
    with shop(tmp_path) as made:
        found = made.improve()
        assert made.ran == [], "a tool has run"
    assert found.new == Prompt("support", "v2", POLITE)
    assert (found.reason, found.winner) == (None, found.candidates[1])
    assert found.text.startswith("v2 better on judge by 1") and "look" not in found.text
    assert [one.status for one in found.candidates] == ["old", "winner"]
    assert [one.score for one in found.candidates] == [0.0, 1.0]
    assert found.comparison is not None
    verdict = found.comparison["judge"]
    assert (verdict.verdict, verdict.cases, found.comparison.level) == ("better", found.cases["test"], 0.975)
    assert "+Answer questions of {{ $ctx.customer }} about orders. Be polite." in found.diff


def test_the_folder_has_the_version_the_diff_the_picture_and_the_summary(tmp_path: Path) -> None:
    with shop(tmp_path) as made:
        found = made.improve()
    assert {one.name for one in found.folder.iterdir()} == {
        ".lock",
        "journal.jsonl",
        "lineage.svg",
        "new-version.md",
        "prompt.diff",
        "summary.json",
    }
    assert found.files["prompt"].read_text() == POLITE
    assert found.files["diff"].read_text() == f"{found.diff}\n"
    assert "winner, validation 1" in found.files["lineage"].read_text()
    assert json.loads(found.files["summary"].read_text()) == json.loads(json.dumps(found.to_dict()))
    # What the recorded runs and the candidates say is for the owner only.
    assert {
        one.stat().st_mode & 0o077 for one in (*found.files.values(), found.folder / "journal.jsonl")
    } == {0}


def test_the_optimiser_never_sees_a_sealed_case_and_only_the_winner_runs_on_them(tmp_path: Path) -> None:
    worse = f"{OLD} Be brief."
    with shop(tmp_path, propose=scripted(worse, POLITE)) as made:
        sealed = sealed_orders(made)
        found = made.improve()
        questions = "\n".join(last_text(one) for one in made.requests_with(REFLECTS))
        brief = [last_text(one) for one in made.requests_with("Be brief")]
        polite = [last_text(one) for one in made.requests_with("Be polite")]
    assert found.winner is not None
    assert len(sealed) == found.cases["test"] > 0
    assert len(found.candidates) == 3
    assert "where is order" in questions
    for number in sealed:
        assert f"where is order {number}\n" not in questions
        assert f"where is order {number}" not in brief
        assert f"where is order {number}" in polite


def test_the_old_version_runs_again_for_the_validation_and_not_for_the_failures_on_record(
    tmp_path: Path,
) -> None:
    with shop(tmp_path, propose=scripted(f"{OLD} Be brief.")) as made:
        found = made.improve(rounds=2)
        old = [one for one in made.server.requests if str(one.system_instructions).endswith("about orders.")]
        runs = {last_text(one) for one in old if last_text(one)}
        judged = len(made.requests_with(JUDGES))
    assert found.new is None
    assert len(runs) == found.cases["validation"]
    # The validation, the recorded failures of two samples, and the one candidate on its sample.
    assert judged == found.cases["validation"] + 2 * 3 + 3


def test_the_sealed_cases_stay_sealed_without_a_candidate(tmp_path: Path) -> None:
    with shop(tmp_path, propose=scripted(f"{OLD} Be brief.")) as made:
        sealed = sealed_orders(made)
        found = made.improve()
        asked = {last_text(one) for one in made.server.requests}
    assert (found.new, found.opening, found.comparison, found.diff) == (None, None, None, "")
    assert found.text.startswith("no new version: none of 1 candidates")
    assert not asked & {f"where is order {number}" for number in sealed}
    assert "prompt" not in found.files
    assert (found.rollout_code, found.rollout_command) == ((), "")


def test_the_reflection_model_reads_the_recorded_failure_and_what_was_wrong(tmp_path: Path) -> None:
    with shop(tmp_path) as made:
        made.improve(minibatch=2)
        question = last_text(made.requests_with(REFLECTS)[0])
    assert OLD in question
    assert question.count("the input:") == 2
    assert "is on its way" in question
    assert "tone: greets nobody" in question
    assert "Score 0 of 1." in question
    assert "{{ $ctx.customer }}" in question.rpartition("these markers and no others")[2]


def test_a_judge_sees_what_the_recorded_runs_have_used(tmp_path: Path) -> None:
    with shop(tmp_path) as made:
        # Each run has two model calls of 15 tokens.
        made.improve(judge=tokens(most=29), minibatch=2, rounds=1)
        question = last_text(made.requests_with(REFLECTS)[0])
    assert question.count("Score 0 of 1.") == 2


def test_the_prompt_may_have_no_markers(tmp_path: Path) -> None:
    text = "Answer questions about orders."
    with shop(tmp_path, make=lambda made: made.agent(text), propose=scripted(f"{text} Be polite.")) as made:
        found = made.improve(agent=made.agent(text))
        question = last_text(made.requests_with(REFLECTS)[0])
    assert found.new is not None
    assert "It has no markers." in question


def test_an_earlier_version_is_improved_from_its_recorded_text(tmp_path: Path) -> None:
    with shop(tmp_path) as made:
        now = made.agent("Say nothing.", "v2")
        found = made.improve(agent=now, version="v1")
    assert found.old.text == OLD
    assert found.new == Prompt("support", "v3", POLITE), "v2 is taken"


def test_its_own_runs_are_no_part_of_a_later_cohort(tmp_path: Path) -> None:
    with shop_after_search(tmp_path) as (made, _):
        cohort = Cohort.select(made.store, agent="support", prompt="support")
        own = made.store.traces(limit=None, metadata={EXPERIMENT_KEY: "improve support v1"})
        agents = {one.metadata["agent_name"] for one in own}
    assert len(cohort) == 20
    assert agents == {"support", "critic", "improve-reflection"}


def test_the_result_says_how_to_roll_it_out(tmp_path: Path) -> None:
    folder = tmp_path / "it's here"
    folder.mkdir()
    with shop_after_search(folder) as (_, found):
        pass
    new, rollout = found.rollout_code
    scope: dict[str, object] = {"Prompt": Prompt, "Path": Path}
    exec(new, scope)
    assert scope["new"] == found.new
    assert rollout == (
        "rollout = Rollout({'v1': agent.instructions, 'v2': new}, shares={'v1': 1, 'v2': 0}, "
        "ramp=(0, .1, .5, 1), unit='user.id', metric='rubric')"
    )
    assert found.rollout_command == (
        f"kantan-agents rollout promote support --db '{folder}/traces.sqlite3'".replace("it's", "it'\"'\"'s")
    )


def test_it_runs_on_the_callers_loop_inside_a_trace_of_the_caller(tmp_path: Path) -> None:
    with shop(tmp_path) as made:

        async def go() -> object:
            with trace("of the caller"):
                return await improve_async(
                    made.agent(), made.store, judge=made.judge(), out=tmp_path / "out", rounds=1
                )

        # The model of the agent proposes too.
        found = anyio.run(go)
        asked = {one.model for one in made.requests_with(REFLECTS)}
        seen = {one.model for one in made.requests_with(JUDGES)}
    assert found.new is not None  # type: ignore[attr-defined]
    assert (asked, seen) == ({"offline-model"}, {"judge-model"})


def test_each_opening_of_the_same_sealed_cases_costs_alpha(tmp_path: Path) -> None:
    texts = (POLITE, f"{POLITE} Always.")
    with shop(tmp_path) as made:
        levels = []
        for number, text in enumerate(texts):
            made.propose = scripted(text)
            found = made.improve(out=tmp_path / f"out-{number}", seed=number)
            assert found.opening is not None
            assert found.comparison is not None
            levels.append((found.opening.number, found.comparison.level))
        # The result of a finished search again costs nothing: nothing is asked.
        again = made.improve(out=tmp_path / "out-0", seed=0)
    assert levels == [(1, 1 - 0.05 / 2), (2, 1 - 0.05 / 4)]
    assert again.opening is not None
    assert again.opening.number == 1


def test_the_same_versions_with_another_agent_are_another_opening(tmp_path: Path) -> None:
    with shop(tmp_path, count=24) as made:
        found = [
            made.improve(
                agent=made.agent(model_settings=ModelSettings(temperature=number / 10)),
                out=tmp_path / f"out-{number}",
            )
            for number in range(2)
        ]
        # And so is the same search in another folder, where the judge is asked anew.
        found.append(made.improve(agent=made.agent(), out=tmp_path / "other"))
    assert [one.opening and one.opening.number for one in found] == [1, 2, 3]


def test_later_turns_are_in_the_same_part_as_the_first(tmp_path: Path) -> None:
    def turns(made: Shop) -> None:
        for number in range(30):
            with closing(SQLiteSession(f"s{number}")) as session:
                for turn in range(2):
                    question = f"turn {turn} where is order {number}"
                    made.agent().run(question, {"customer": "Aiko"}, session=session)

    with shop(tmp_path, count=0) as made:
        turns(made)
        registry.flush_recorders(made.path)
        cohort = Cohort.select(made.store, agent="support")
        old = Prompt("support", "v1", OLD)
        parts = parts_of(cohort, "support", old, frozenset(), Prices(), SPLIT)
    orders = [
        {re.findall(r"order (\d+)", str(case.input))[0] for case in part}
        for part in (parts.train, parts.validation, parts.test.open("a test looks at them"))
    ]
    assert sum(len(part) for part in orders) == 30
    assert len(set.union(*orders)) == 30


def test_an_agent_under_a_rollout_is_improved_from_its_control(tmp_path: Path) -> None:
    with shop(tmp_path) as made:
        old = Prompt("support", "v1", OLD)
        rollout = Rollout({"v1": old, "v2": "Be quick."}, ramp=(0.5, 1), unit="customer", store=made.path)
        found = made.improve(agent=made.agent().clone(instructions=rollout))
    assert found.new is not None
    assert found.new.text == POLITE
