"""Tests of promptfoo: results, configuration, or test cases as CSV."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Final

from kantan_agents.lab.evaluation.dataset.importing.columns import as_text, split_input
from kantan_agents.lab.evaluation.dataset.importing.rows import Row
from kantan_agents.lab.evaluation.dataset.located_cases import LocatedCases
from kantan_agents.support.arguments import shown
from kantan_agents.support.log import get_logger

KEYS: Final = ("data", "results", "tests")
_EQUALS: Final = "equals"
_log = get_logger("kantan_agents.evaluation")
_METADATA: Final = "__metadata:"
_FILE: Final = "file://"
_OF_CONFIGURATION: Final = frozenset({"$schema", "description", "defaultTest", "tests", "scenarios"})
_OF_TEST: Final = frozenset({"description", "vars", "assert", "metadata"})
_IS_RESULT: Final = frozenset({"response", "testIdx", "testCase"})
_MOST_COMBINATIONS: Final = 10_000
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
    """Return the arguments of ``Case`` for a test, or for one of its results."""
    test = {**row, **(row["testCase"] if isinstance(row.get("testCase"), Mapping) else {})}
    if isinstance(place := test.get("vars"), (str, list)):
        raise found.error(line, f"'vars' names another file, {place!r}; import that one")
    if not isinstance(test.get("vars"), Mapping):
        test = _of_table(row)
    if not test["vars"]:
        raise found.error(line, "it has no variables, so there is no input")
    for name, value in test["vars"].items():
        _check_is_here(found, line, f"the variable {name!r}", value)
    assertions = _listed(test.get("assert"))
    equal = [one.get("value") for one in assertions if _is_equals(one)]
    for value in equal:
        _check_is_here(found, line, "the value of equals", value)
    values = split_input(found, line, test["vars"], columns)
    values["expected"] = as_text(equal[0]) if len(equal) == 1 else None
    given = test.get("metadata")
    metadata = dict(given) if isinstance(given, Mapping) else {"promptfoo": given} if given else {}
    if test.get("description"):
        metadata["description"] = test["description"]
    if others := [one for one in assertions if len(equal) != 1 or not _is_equals(one)]:
        metadata["assert"] = others
    return {**values, "metadata": metadata}


def _check_is_here(found: LocatedCases, line: int, what: str, value: Any) -> None:
    if isinstance(value, str) and value.startswith(_FILE):
        raise found.error(line, f"{what} is in another file, {value!r}; write its content here")


def _is_equals(assertion: Any) -> bool:
    return isinstance(assertion, Mapping) and assertion.get("type") == _EQUALS


def _listed(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def tests_of(found: LocatedCases, value: Any) -> Any:
    """Return the tests in a configuration, each with its inherited values; other values unchanged."""
    if isinstance(value, Mapping) and {"tests", "scenarios"} & value.keys():
        default = _tests(found, "defaultTest", [value.get("defaultTest") or {}])
        tests: list[tuple[Any, ...]] = [(test,) for test in _tests(found, "tests", value.get("tests"))]
        for scenario in _tests(found, "scenarios", value.get("scenarios")):
            configs = _tests(found, "config", scenario.get("config"))
            # Without tests, each configuration is one.
            given = [{}] if scenario.get("tests") is None else scenario["tests"]
            tests += product(configs, _tests(found, "tests", given))
        _name_left_out({*value} - _OF_CONFIGURATION)
        return [_inheriting(default[0], *parts) for parts in tests]
    return value


def expanded(found: LocatedCases, rows: Iterable[Row]) -> list[Row]:
    """Return a test for each combination of its list variables; results unchanged."""
    listed: list[Row] = []
    left: set[str] = set()
    for number, row in rows:
        if isinstance(row.get("vars"), Mapping) and not _IS_RESULT & row.keys():
            left |= {*row} - _OF_TEST
            listed += [(number, one) for one in _combinations(found, number, row)]
        else:
            listed.append((number, row))
    _name_left_out(left)
    return listed


def _name_left_out(parts: set[str]) -> None:
    if parts:
        _log.warning("promptfoo_parts_not_imported", parts=", ".join(sorted(parts)))


def _tests(found: LocatedCases, name: str, value: Any) -> list[Any]:
    listed = _listed(value)
    for number, one in enumerate(listed, 1):
        is_generated = isinstance(one, Mapping) and "vars" not in one
        place = one.get("path") if is_generated else one
        if isinstance(place, str):
            advice = "import that one" if name == "tests" else "write its content here"
            raise found.error(number, f"{name!r} names another file, {place!r}; {advice}")
        if not isinstance(one, Mapping):
            raise found.error(number, f"{name} must be objects, not {shown(one)}")
    return listed


def _inheriting(default: Mapping[str, Any], *parts: Mapping[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    options = [one for part in parts if isinstance(one := part.get("options"), Mapping)]
    if any(one.get("disableDefaultAsserts") is True for one in options):
        default = {key: value for key, value in default.items() if key != "assert"}
    for test in (default, *parts):
        for key, value in test.items():
            before = merged.get(key)
            if value is None and key in merged:  # as if the key were missing
                continue
            if isinstance(before, Mapping) and isinstance(value, Mapping):
                merged[key] = {**before, **value}
            elif key == "assert":
                merged[key] = [*_listed(before), *_listed(value)]
            else:
                merged[key] = value
    return merged


def _combinations(found: LocatedCases, number: int, test: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    given, options = test["vars"], test.get("options")
    if isinstance(options, Mapping) and options.get("disableVarExpansion"):
        return [test]
    lists = [one if isinstance(one, list) and one else [one] for one in given.values()]
    if math.prod(map(len, lists)) > _MOST_COMBINATIONS:
        raise found.error(number, f"its variables have more than {_MOST_COMBINATIONS:,} combinations")
    return [{**test, "vars": dict(zip(given, one, strict=True))} for one in product(*lists)]


def _of_table(row: Mapping[str, Any]) -> dict[str, Any]:
    """Special columns of a CSV file start with two underscores."""
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
