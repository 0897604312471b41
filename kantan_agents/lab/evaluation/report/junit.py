"""An evaluation as JUnit XML, which continuous integration shows as tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final
from xml.etree import ElementTree as ET

from kantan_agents.lab.evaluation.comparing.paired_values import better_of
from kantan_agents.lab.evaluation.experiment.evaluation import Evaluation
from kantan_agents.lab.evaluation.experiment.results import CaseResult

_PASSING: Final = 0.5
_LONGEST: Final = 2_000
# Characters that XML 1.0 cannot have, even as an entity.
_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(evaluation: Evaluation) -> bytes:
    """Return an evaluation as JUnit XML: each run of a case is a test, the variants are suites.

    A score below 0.5, where higher is better, is a failure.
    """
    root = ET.Element("testsuites", name=_text(evaluation.name))
    for name in evaluation.variants:
        results = evaluation[name]
        lower = {metric for metric in results.metrics if better_of(metric, results) == "lower"}
        suite = ET.SubElement(root, "testsuite", name=_text(name))
        for one in results.results:
            case = one.case_id if evaluation.repeats == 1 else f"{one.case_id} ({one.repeat + 1})"
            troubles = [*_troubles(one, lower)]
            test = _add_test(suite, f"{evaluation.name}.{name}", case, one.seconds, troubles)
            if troubles and one.output is not None:
                ET.SubElement(test, "system-out").text = _text(_written(one.output))
        _count(suite)
    if evaluation.stopped is not None:
        suite = ET.SubElement(root, "testsuite", name="evaluation")
        made = f"{len(evaluation)} of {evaluation.planned} runs were made"
        trouble = ("error", f"{made}: {evaluation.stopped}")
        _add_test(suite, _text(evaluation.name), "all runs are made", 0.0, [trouble])
        _count(suite)
    found: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return found


def _troubles(result: CaseResult, lower: set[str]) -> Iterator[tuple[str, str]]:
    if result.error is not None:
        yield "error", result.error
    for metric, score in result.scores.items():
        if score.value is None:
            yield "error", f"{metric}: {score.error}"
        elif metric not in lower and score.value < _PASSING:
            note = score.comment or score.label
            yield "failure", f"{metric}: {score.value:g}" + (f", {note}" if note else "")


def _add_test(
    suite: ET.Element, group: str, name: str, seconds: float, troubles: list[tuple[str, str]]
) -> ET.Element:
    attributes = {"classname": _text(group), "name": _text(name), "time": f"{seconds:.3f}"}
    test = ET.SubElement(suite, "testcase", attributes)
    # An error hides a failure: readers of this format allow one of both for a test.
    for kind in ("error", "failure"):
        texts = [_text(text) for of_kind, text in troubles if of_kind == kind]
        if texts:
            found = ET.SubElement(test, kind, message=texts[0].partition("\n")[0])
            found.text = "\n".join(texts)
            break
    return test


def _written(output: Any) -> str:
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def _count(suite: ET.Element) -> None:
    tests = list(suite)
    suite.set("tests", str(len(tests)))
    suite.set("errors", str(sum(test.find("error") is not None for test in tests)))
    suite.set("failures", str(sum(test.find("failure") is not None for test in tests)))
    suite.set("time", f"{sum(float(test.get('time', '0')) for test in tests):.3f}")


def _text(text: str) -> str:
    """Show characters that XML cannot have by their code."""
    return _NOT_IN_XML.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)
