"""What a user can get wrong: one line that says what, where and what to do, and nothing is asked."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import set_trace_processors

from kantan_agents import Agent, SQLiteRecorder, TraceStore
from kantan_agents.errors import (
    CohortTooSmallError,
    EmptyCohortError,
    InvalidOptionError,
    JudgeFailedError,
    KantanAgentsError,
    OptimizerMissingError,
    PromptNotImprovableError,
    ReflectionFailedError,
    TraceDatabaseError,
    WorkingFolderError,
)
from kantan_agents.lab import Case, Cohort, evaluator
from kantan_agents.lab.improve import improve
from kantan_agents.lab.improve.units import units_of_cases
from kantan_agents.testing import Reply
from tests.lab.improve.shops import OLD, REFLECTS, Shop, shop


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with shop(tmp_path_factory.mktemp("shop"), count=24) as one:
        yield one


@evaluator(better="lower")
def wrong_way(finished: Any) -> float:
    return 0.0


@evaluator(scale=(-1, 1))
def below(finished: Any) -> float:
    return 0.0


@pytest.mark.parametrize(
    ("options", "kind", "reason"),
    [
        ({"prompt": "suport"}, PromptNotImprovableError, "did you mean 'support'"),
        ({"prompt": "billing"}, PromptNotImprovableError, "its prompt is 'support'"),
        ({"version": "v7"}, PromptNotImprovableError, "'v7'"),
        ({"agent": Agent("support", "Help.")}, PromptNotImprovableError, "has no Prompt with a name"),
        ({"agent": "support"}, InvalidOptionError, "must be an Agent, not str"),
        ({"judge": None}, InvalidOptionError, "say what gives the scores"),
        ({"judge": Agent("critic", "Judge.")}, InvalidOptionError, "answers with a text"),
        ({"judge": wrong_way}, InvalidOptionError, "a lower score is better"),
        ({"judge": below}, InvalidOptionError, "judge: the scale of 'below', -1 to 1, must begin at 0"),
        ({"judge": 3}, InvalidOptionError, "must be an Evaluator or a function"),
        ({"rounds": 0}, InvalidOptionError, "rounds"),
        ({"minibatch": 0}, InvalidOptionError, "minibatch"),
        ({"seed": "x"}, InvalidOptionError, "seed"),
        ({"perfect": 0}, InvalidOptionError, "perfect"),
        ({"max_tokens": 0}, InvalidOptionError, "max_tokens"),
        ({"max_length": 10}, InvalidOptionError, "characters already"),
        ({"max_cost_increase": -1}, InvalidOptionError, "max_cost_increase"),
        ({"concurrency": 0}, InvalidOptionError, "concurrency"),
        ({"new_version": " "}, InvalidOptionError, "must not be empty"),
        ({"progress": 1}, InvalidOptionError, "must be a function"),
        ({"split": (0.5, 0.5)}, InvalidOptionError, "must be three floats"),
        ({"split": (0.5, 0.4, 0.2)}, InvalidOptionError, "the sum is 1.1"),
        ({"sample": 0}, InvalidOptionError, "sample"),
        ({"cohort": ["a"]}, InvalidOptionError, "must be a Cohort"),
        ({"run_config": {"nothing": 1}}, InvalidOptionError, "run_config"),
    ],
)
def test_a_wrong_argument_is_named_before_anything_is_asked(
    made: Shop, tmp_path: Path, options: dict[str, Any], kind: type[KantanAgentsError], reason: str
) -> None:
    made.server.requests.clear()
    given = {"judge": made.judge(), "out": tmp_path / "out", **options}
    agent = given.pop("agent", made.agent())
    with pytest.raises(kind) as raised:
        improve(agent, made.store, **given)
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)
    assert made.server.requests == []
    assert not (tmp_path / "out" / "journal.jsonl").exists()


def test_a_cohort_and_a_selection_exclude_each_other(made: Shop, tmp_path: Path) -> None:
    cohort = Cohort.select(made.store, agent="support")
    with pytest.raises(InvalidOptionError, match="use one of both"):
        made.improve(cohort=cohort, limit=3, out=tmp_path / "out")


def test_a_database_that_is_missing_and_one_without_such_runs(made: Shop, tmp_path: Path) -> None:
    with pytest.raises(TraceDatabaseError):
        improve(made.agent(), TraceStore(tmp_path / "none.sqlite3"), judge=made.judge(), out=tmp_path / "a")
    with pytest.raises(EmptyCohortError, match="no trace in"):
        made.improve(agent=made.agent(version="v9"), out=tmp_path / "b")


@pytest.mark.parametrize("count", [1, 3, 8])
def test_a_small_cohort_is_refused_with_the_number_that_is_needed(
    made: Shop, tmp_path: Path, count: int
) -> None:
    made.server.requests.clear()
    with pytest.raises(CohortTooSmallError) as raised:
        made.improve(limit=count, out=tmp_path / "out")
    assert raised.value.found == count
    assert count < raised.value.needed <= 30
    assert f"about {raised.value.needed} are needed" in str(raised.value)
    assert made.server.requests == []


def test_runs_of_one_conversation_count_as_one(tmp_path: Path) -> None:
    with shop(tmp_path, count=1) as made:
        for number in range(30):
            made.agent().run(
                f"where is order {number}",
                {"customer": "Ada"},
                run_config={"group_id": f"conversation {number % 2}"},
            )
        with pytest.raises(CohortTooSmallError) as raised:
            made.improve()
    assert raised.value.found == 3


def test_runs_that_were_asked_the_same_count_as_one(tmp_path: Path) -> None:
    with shop(tmp_path, count=0) as made:
        for number in range(8):
            made.agent().run(f"where is order {number % 2}", {"customer": "Ada"})
        with pytest.raises(CohortTooSmallError) as raised:
            made.improve()
    assert raised.value.found == 2


def test_conversations_in_which_users_said_the_same_are_one_unit() -> None:
    def turn(text: str, *earlier: str, **options: Any) -> Case:
        items = [{"role": role, "content": one} for one in earlier for role in ("user", "assistant")]
        return Case(text, earlier=items, **options)

    cases = [
        Case("hi", id="alone"),
        Case("hi", id="in Japan", context={"country": "jp"}),
        turn("hi", id="a1", conversation="a"),
        turn("bye", "hi", id="a2", conversation="a"),
        turn("bye", "hi", id="b2", conversation="b"),
        turn("other", "hi", id="c2", conversation="c"),
        turn("hi", id="d1", conversation="d"),
    ]
    units = units_of_cases(cases)
    assert units["a1"] == units["a2"] == units["b2"]
    assert units["alone"] == units["d1"]
    assert len(set(units.values())) == 4


def test_incomplete_records_are_left_out_and_named(tmp_path: Path) -> None:
    with shop(tmp_path, count=0) as made:
        other = SQLiteRecorder(made.path, record_requests=False)
        set_trace_processors([other])
        for number in range(3):
            made.agent().run(f"where is order {number}", {"customer": "Ada"})
        other.shutdown()
        with pytest.raises(CohortTooSmallError, match="its record is not complete"):
            made.improve()


def test_runs_of_another_version_are_left_out_and_named(tmp_path: Path) -> None:
    with shop(tmp_path) as made:
        for number in range(40, 43):
            made.agent(version="v0").run(f"where is order {number}", {"customer": "Ada"})
        cohort = Cohort.select(made.store, agent="support")
        found = made.improve(cohort=cohort)
    assert len(cohort) == 23
    assert sum(found.cases.values()) == 20
    assert {one.reason for one in found.skipped} == {"it is a run of support v0, not of support v1"}


def test_without_the_optimiser_the_command_to_install_it_is_given(
    made: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [one for one in sys.modules if one.partition(".")[0] == "gepa"]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "gepa":
            raise ImportError("No module named 'gepa'")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(OptimizerMissingError, match=r'pip install "\.\[improve\]"') as raised:
        made.improve(out=tmp_path / "out")
    assert raised.value.code == "E124"
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made(made: Shop, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkingFolderError):
        made.improve(out=tmp_path / "file")


def always(value: Any) -> Callable[[Any], Any]:
    def judge(finished: Any) -> Any:
        return value

    return judge


@pytest.mark.parametrize(
    ("judge", "reason"),
    [
        (always(7), "7 is not on the scale from 0 to 1; more than half of the runs have no score"),
        (always(-1), "-1 is not on the scale from 0 to 1"),
        (always("good"), "a label needs a value"),
        (always(None), "it does not apply to it"),
        (always({"a": 1.0, "b": 0.5}), "it gives judge.a, judge.b and not judge"),
    ],
)
def test_a_judge_without_a_usable_score_is_named(made: Shop, tmp_path: Path, judge: Any, reason: str) -> None:
    with pytest.raises(JudgeFailedError) as raised:
        made.improve(judge=judge, out=tmp_path / "out")
    assert reason in str(raised.value)
    assert raised.value.code == "E125"


def test_a_judge_that_fails_once_is_asked_again(tmp_path: Path) -> None:
    calls = [0]

    def score(text: str) -> Any:
        calls[0] += 1
        return "no verdict" if calls[0] == 3 else float("Dear customer" in text)

    with shop(tmp_path, score=score) as made:
        assert made.improve().new is not None


def test_another_scale_is_named_with_perfect(tmp_path: Path) -> None:
    with shop(tmp_path, score=lambda text: 9.0 if "Dear customer" in text else 2.0) as made:
        found = made.improve(perfect=10)
    assert found.new is not None
    assert [one.score for one in found.candidates] == [2.0, 9.0]


def test_an_old_version_without_faults_needs_no_new_one(tmp_path: Path) -> None:
    with shop(tmp_path, score=lambda _text: 1.0) as made:
        found = made.improve()
        assert made.requests_with(REFLECTS) == []
    assert (found.new, len(found.candidates)) == (None, 1)
    assert "has the best score on every validation case already" in str(found.reason)


def test_a_reflection_model_that_never_answers_as_asked_is_an_error(tmp_path: Path) -> None:
    failed = pytest.raises(ReflectionFailedError, match="choose another reflection model")
    with shop(tmp_path, propose=lambda _question, _number: "I would rather not.") as made, failed as raised:
        made.improve(rounds=2)
    assert raised.value.code == "E126"


def test_one_invalid_reply_of_the_reflection_model_costs_a_round(tmp_path: Path) -> None:
    def propose(_question: str, number: int) -> Any:
        return "Hm." if number <= 2 else {"changes": "polite", "prompt": f"{OLD} Be polite."}

    with shop(tmp_path, propose=propose) as made:
        found = made.improve(rounds=3)
    assert found.new is not None
    assert len(found.candidates) == 2


def test_a_model_without_access_ends_the_search_and_the_next_start_goes_on(tmp_path: Path) -> None:
    is_down = [True]

    with shop(tmp_path) as made:

        def respond(request: Any) -> Any:
            is_agent = "Answer questions" in str(request.system_instructions)
            if is_down[0] and is_agent and len(made.server.requests) > 20:
                return Reply("no such key", status=401)
            return made.reply(request)

        made.respond = respond
        with pytest.raises(Exception, match="no such key"):
            made.improve()
        is_down[0] = False
        found = made.improve()
    assert found.new is not None
