"""``kantan-agents eval judge``: how good a judge is, and what people would say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import agents
import pytest

from kantan_agents.lab import Evaluation, LabelQueue, add_label, corrected_compare, judge_quality
from tests.cli.conftest import Invoke
from tests.lab.evaluation.labels.shop import copied, evaluate_shop, label_all

COMMAND = ("eval", "judge", "shop", "--metric", "helpful")


@pytest.fixture(scope="session")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    agents.set_trace_processors([])
    path = tmp_path_factory.mktemp("judge") / "traces.sqlite3"
    evaluation = evaluate_shop(path, 32)
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko", scale="yesno"))
    label_all(LabelQueue.of(evaluation, "helpful", by="bo", sample=10, scale="yesno"), wrong=0.1)
    return path


@pytest.fixture
def evaluation(labelled: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Evaluation]:
    with copied(labelled) as found:
        monkeypatch.setenv("KANTAN_AGENTS_DB", str(found.path))
        yield found


def test_prints_quality_agreement_and_the_corrected_difference(
    evaluation: Evaluation, kantan_agents: Invoke
) -> None:
    outcome = kantan_agents(*COMMAND)
    assert (outcome.code, outcome.stderr) == (0, "")
    shown = " ".join(outcome.stdout.split())
    for line in judge_quality(evaluation, "helpful").text.splitlines():
        assert " ".join(line.split()) in shown
    assert "agreement on helpful: kappa" in shown
    assert corrected_compare(evaluation["v1"], evaluation["v2"], "helpful").text in shown


def test_json_has_all_of_it(evaluation: Evaluation, kantan_agents: Invoke) -> None:
    outcome = kantan_agents(*COMMAND, "--json", "--by", "aiko")
    assert outcome.code == 0
    data = json.loads(outcome.stdout)
    assert data["quality"] == json.loads(
        json.dumps(judge_quality(evaluation, "helpful", by="aiko").to_dict())
    )
    assert data["agreement"]["results"] == 20
    (corrected,) = data["corrected"]
    assert corrected["labels"] == 32
    assert corrected == corrected_compare(evaluation["v1"], evaluation["v2"], "helpful", by="aiko").to_dict()


def test_last_is_the_newest_evaluation(evaluation: Evaluation, kantan_agents: Invoke) -> None:
    outcome = kantan_agents("eval", "judge", "LAST", "--metric", "helpful")
    assert (outcome.code, outcome) == (0, kantan_agents(*COMMAND))


def test_labels_that_cannot_be_used_are_a_reason_and_no_failure(
    evaluation: Evaluation, kantan_agents: Invoke
) -> None:
    add_label(evaluation, "case-1", "v1", 0, "helpful", True, by="cy")
    outcome = kantan_agents(*COMMAND)
    assert outcome.code == 0
    shown = " ".join(outcome.stdout.split())
    assert "cannot tell, 1 of 85 labels (cy) was picked by hand" in shown
    outcome = kantan_agents(*COMMAND, "--by", "bo", "--json")
    (corrected,) = json.loads(outcome.stdout)["corrected"]
    assert "10 cases have a label with both variants" in corrected["reason"]


def test_with_one_variant_its_score_is_corrected(tmp_path: Path, kantan_agents: Invoke) -> None:
    agents.set_trace_processors([])
    path = tmp_path / "t.sqlite3"
    evaluation = evaluate_shop(path, 31, ["v1"])
    label_all(LabelQueue.of(evaluation, "is it good?", by="aiko"))
    outcome = kantan_agents(*COMMAND, "--people", "is it good?", "--db", str(path))
    assert outcome.code == 0
    assert "v1 on is it good?, as people judge it: 0." in outcome.stdout


def test_a_threshold_can_be_given(evaluation: Evaluation, kantan_agents: Invoke) -> None:
    data = json.loads(kantan_agents(*COMMAND, "--threshold", "0.9", "--json").stdout)
    assert data["quality"]["threshold"] == 0.9


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("eval", "judge", "shopp", "--metric", "helpful"), "did you mean 'shop'"),
        (("eval", "judge", "shop", "--metric", "helpfull"), "did you mean 'helpful'"),
        ((*COMMAND, "--threshold", "-1"), "--threshold"),
        ((*COMMAND, "--by", " "), "by"),
        (("eval", "judge", "shop"), "--metric"),
        ((*COMMAND, "--db", "nothing.sqlite3"), "[E60]"),
    ],
)
def test_bad_arguments(
    evaluation: Evaluation, kantan_agents: Invoke, arguments: tuple[str, ...], says: str
) -> None:
    outcome = kantan_agents(*arguments)
    assert outcome.code == 2
    assert says in outcome.stderr and outcome.stderr.count("\n") == 1
