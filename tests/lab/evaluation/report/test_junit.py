"""Evaluations as JUnit XML, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import attrs
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.lab import Case, CaseResult, Evaluation, Score
from kantan_agents.lab.evaluation.experiment.rows import EvaluationRow
from kantan_agents.lab.evaluation.report.junit import junit_xml
from kantan_agents.lab.evaluation.report.markdown import markdown_of_evaluation
from tests.lab.evaluation.report.made_results import result

CASE = Case("q", id="c")


def evaluation_of(results: Sequence[CaseResult], name: str = "orders", **body: Any) -> Evaluation:
    """Return an evaluation that has read its results already."""
    variants = {variant: {"hash": variant} for variant in dict.fromkeys(one.variant for one in results)}
    evaluators = {"slow": {"better": "lower"}, "kind": {"better": "higher"}}
    stored = {"variants": variants, "evaluators": evaluators, "repeats": 1, "planned": len(results), **body}
    made = Evaluation(Path("none"), EvaluationRow(1, name, datetime.now(timezone.utc), stored))
    vars(made).update(results=tuple(results), spent={variant: {} for variant in variants})
    return made


def troubles_of(xml: bytes) -> dict[str, list[tuple[str, str]]]:
    """Return for each test what it says besides that it has passed."""
    root = ET.fromstring(xml)
    return {
        str(one.get("name")): [
            (trouble.tag, trouble.text or "") for trouble in one if trouble.tag != "system-out"
        ]
        for one in root.iter("testcase")
    }


def test_a_low_score_is_a_failure_and_what_failed_is_an_error() -> None:
    scores: dict[str, dict[str, Any]] = {
        "good": {"kind": 1.0, "slow": 0.1},
        "unkind": {"kind": Score(0.0, comment="rude")},
        "slow": {"slow": 9.0},
        "unscored": {"kind": Score(None, error="KeyError: 'x'"), "rude": 0.0},
    }
    results = [result(Case("q", id=name), "v1", given) for name, given in scores.items()]
    results.append(result(Case("q", id="crashed"), "v1", {}, status="failed", error="BadRequestError: no"))
    xml = junit_xml(evaluation_of(results))
    assert troubles_of(xml) == {
        "good": [],
        "unkind": [("failure", "kind: 0, rude")],
        "slow": [],
        "unscored": [("error", "kind: KeyError: 'x'")],
        "crashed": [("error", "BadRequestError: no")],
    }
    (suite,) = ET.fromstring(xml)
    said = [test.get("name") for test in suite if test.find("system-out") is not None]
    assert said == ["unkind", "unscored", "crashed"]
    assert {key: suite.get(key) for key in ("name", "tests", "errors", "failures", "time")} == {
        "name": "v1",
        "tests": "5",
        "errors": "2",
        "failures": "1",
        "time": "5.000",
    }


def test_repeats_and_an_evaluation_that_was_stopped_are_in_it() -> None:
    results = [result(Case("q", id="c"), "v1", {"kind": 1.0}, repeat=number) for number in range(2)]
    evaluation = attrs.evolve(evaluation_of(results, repeats=2, planned=9), stopped=ValueError("no budget"))
    vars(evaluation).update(results=tuple(results), spent={"v1": {}})
    assert troubles_of(junit_xml(evaluation)) == {
        "c (1)": [],
        "c (2)": [],
        "all runs are made": [("error", "2 of 9 runs were made: no budget")],
    }


@given(st.text(st.characters(), max_size=12))
def test_any_text_is_valid_xml(text: str) -> None:
    failed = result(CASE, text, {"kind": Score(0.0, comment=text)}, status="failed", error=f"E: {text}")
    rude = result(CASE, text, {text or "m": Score(0.2, comment=text)})
    for one in (failed, rude):
        named = attrs.evolve(one, case_id=text)
        ((_, troubles),) = troubles_of(junit_xml(evaluation_of([named], name=text))).items()
        assert len(troubles) == 1


def test_markdown_has_the_state_first_and_what_failed() -> None:
    case = Case("q", id="a|b")
    results = [
        result(case, "v1", {"kind": 1.0}),
        result(case, "v2", {}, status="failed", error="@bob\n<b>"),
    ]
    text = markdown_of_evaluation(evaluation_of(results))
    assert text.splitlines()[0] == "**orders: 2 of 2 runs made, 1 failed**"
    assert "| v1 | 1 (1) | 0 | 15 |  |" in text
    assert r"- a\|b, v2: @&#8203;bob \<b\>" in text
