"""Tests of promptfoo: its results as JSON or JSON Lines, tests as JSON, or test cases as CSV."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.lab.evaluation.dataset.importing.columns import split_input
from kantan_agents.lab.evaluation.dataset.located_cases import LocatedCases

KEYS: Final = ("data", "results", "tests")
"""Names of the list of results or tests, one in the other."""
_EQUALS: Final = "equals"
_METADATA: Final = "__metadata:"
_ALONE: Final = r"(?:not-)?(?:is|contains)-(?:json|sql|xml|html|refusal|valid-[a-z-]+)"
_WITH_VALUE: Final = (
    r"(?:not-)?(?:i?contains(?:-all|-any|-json|-sql|-xml|-html)?|equals|starts-with|ends-with|regex|is-[a-z-]+|"
    r"javascript|python|ruby|fn|eval|file|grade|llm-rubric|g-eval|similar|factuality|model-graded-[a-z]+|"
    r"answer-relevance|context-[a-z]+|rouge-[a-z]|bleu|gleu|meteor|levenshtein|latency|cost|perplexity|"
    r"perplexity-score|classifier|moderation|webhook|select-best)"
)
_ASSERTION: Final = re.compile(rf"({_ALONE})|({_WITH_VALUE})(?:\([^)]*\))?:\s*(.*)", re.DOTALL)


def promptfoo_values(
    found: LocatedCases, line: int, row: Mapping[str, Any], columns: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return the arguments of ``Case`` for a test, or for one of its results.

    The value that the output must equal is the expected output. Other assertions are in
    ``metadata["assert"]``.

    Raises:
        DatasetFileError: E100, it is not a test, or it is not known which variable is the input.
    """
    test = {**row, **(row["testCase"] if isinstance(row.get("testCase"), Mapping) else {})}
    for key in ("vars", "tests"):
        if isinstance(place := row.get(key), str) and place.startswith("file://"):
            raise found.error(line, f"its {key} are in another file, {place!r}; import that one")
    if not isinstance(test.get("vars"), Mapping):
        test = _of_table(row)
    if not test["vars"]:
        raise found.error(line, "it has no variables, so there is no input")
    assertions = [one for one in test.get("assert") or () if isinstance(one, Mapping)]
    equal = [one.get("value") for one in assertions if one.get("type") == _EQUALS]
    values = split_input(found, line, test["vars"], columns)
    values["expected"] = equal[0] if len(equal) == 1 else None
    given = test.get("metadata")
    metadata = dict(given) if isinstance(given, Mapping) else {"promptfoo": given} if given else {}
    if test.get("description"):
        metadata["description"] = test["description"]
    if others := [one for one in assertions if len(equal) != 1 or one.get("type") != _EQUALS]:
        metadata["assert"] = others
    return {**values, "metadata": metadata}


def _of_table(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the test in a row of a CSV file, whose special columns begin with two underscores."""
    given = {column: value for column, value in row.items() if value is not None}
    expected = [value for column, value in given.items() if column.startswith("__expected")]
    metadata = {
        column.removeprefix(_METADATA).removeprefix("__"): value
        for column, value in given.items()
        if column.startswith("__") and not column.startswith(("__expected", "__description"))
    }
    return {
        "vars": {column: value for column, value in given.items() if not column.startswith("__")},
        "assert": [_assertion(str(one)) for one in expected],
        "description": given.get("__description"),
        "metadata": metadata,
    }


def _assertion(text: str) -> dict[str, str]:
    match = _ASSERTION.fullmatch(text.strip())
    if match is None:
        return {"type": _EQUALS, "value": text}
    return {"type": match[1]} if match[1] else {"type": match[2], "value": match[3]}
