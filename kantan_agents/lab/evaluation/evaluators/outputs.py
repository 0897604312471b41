"""Evaluators of the final output: equality, substrings, JSON fields, patterns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.dataset.json_data import NotJSONDataError, data_in, json_copy, same_data
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.evaluation.evaluators.versions import version_of_options
from kantan_agents.lab.evaluation.finished_case import FinishedCase
from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.support.arguments import checked_bool, checked_text, shown

_OF_THE_CASE: Final[Any] = object()
_MISSING: Final = object()


def exact(expected: Any = _OF_THE_CASE, *, name: str = "exact") -> Evaluator:
    """Return an evaluator: is the output exactly the expected one?

    It does not apply to cases without an expected output. If only one of the two is a string, as for a
    structured output and a CSV file, the string is parsed as JSON.

    Args:
        expected: The same expected output for all cases; by default the expected output of each case.
        name: Name of the metric.

    Raises:
        InvalidOptionError: E75, ``expected`` is not JSON data.
    """
    is_given = expected is not _OF_THE_CASE
    wanted = _checked_data("expected", expected) if is_given else None

    async def score(finished: FinishedCase) -> bool | None:
        reference = wanted if is_given else finished.expected
        if reference is None and not is_given:
            return None
        output = finished.output
        if isinstance(reference, str) != isinstance(output, str):
            return same_data(data_in(output), data_in(reference))
        return same_data(output, reference)

    return Evaluator(name, version_of_options("exact", {"given": is_given, "expected": wanted}), score)


def contains(*texts: str, ignore_case: bool = True, name: str = "contains") -> Evaluator:
    """Return an evaluator: does the output contain all of these strings?

    Args:
        *texts: The strings; without any, the expected output of each case, if it is a string.
        ignore_case: Whether upper and lower case are the same.
        name: Name of the metric.

    Raises:
        InvalidOptionError: E75, a string is empty or not a str.
    """
    for text in texts:
        if not checked_text("texts", text):
            raise InvalidOptionError(option="texts", reason="must not be empty: every output contains that")
    checked_bool("ignore_case", ignore_case)

    def folded(text: str) -> str:
        return text.casefold() if ignore_case else text

    async def score(finished: FinishedCase) -> Score | None:
        expected = finished.expected
        wanted = texts or ([expected] if isinstance(expected, str) and expected else [])
        if not wanted:
            return None
        output = folded(finished.text)
        missing = [text for text in wanted if folded(text) not in output]
        return _yes_or_no(not missing, "missing: " + ", ".join(map(repr, missing)))

    options = {"texts": list(texts), "ignore_case": ignore_case}
    return Evaluator(name, version_of_options("contains", options), score)


def json_fields(*paths: str, name: str = "json_fields") -> Evaluator:
    """Return an evaluator: which fraction of the fields of a structured output is as expected?

    It does not apply to cases whose expected output has no fields. A string output is parsed as JSON.

    Args:
        *paths: The fields, such as ``"customer.name"`` or ``"items.0"``; without any, all top-level fields of
            the expected output.
        name: Name of the metric.

    Raises:
        InvalidOptionError: E75, a path is empty or not a str.
    """
    for path in paths:
        if not checked_text("paths", path):
            raise InvalidOptionError(option="paths", reason="must not be empty")

    async def score(finished: FinishedCase) -> Score | None:
        expected, output = data_in(finished.expected), data_in(finished.output)
        if not isinstance(expected, (Mapping, list)):
            return None
        wanted = [path.split(".") for path in paths] or [[key] for key in _keys(expected)]
        found = {".".join(path): (_at(expected, path), _at(output, path)) for path in wanted}
        compared = {path: pair for path, pair in found.items() if pair[0] is not _MISSING}
        if not compared:
            return None
        wrong = [
            path for path, (one, other) in compared.items() if other is _MISSING or not same_data(one, other)
        ]
        comment = "; ".join(f"{path}: {_shown(compared[path][1])}" for path in wrong) or None
        return Score(1 - len(wrong) / len(compared), comment=comment)

    return Evaluator(name, version_of_options("json_fields", {"paths": list(paths)}), score)


def matches(pattern: str | re.Pattern[str], *, name: str = "matches") -> Evaluator:
    r"""Return an evaluator: does a regular expression match somewhere in the output?

    Args:
        pattern: The expression for Python's ``re``. Start it with ``\A`` and end it with ``\Z`` to match the
            whole output. Nested repetitions, such as ``(a+)+``, can take very long on a long output.
        name: Name of the metric.

    Raises:
        InvalidOptionError: E75, it is not a regular expression for strings.
    """
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError, OverflowError, RecursionError) as error:
        raise InvalidOptionError(option="pattern", reason=f"is not a regular expression: {error}") from error
    if not isinstance(compiled.pattern, str):
        raise InvalidOptionError(option="pattern", reason="must be for texts, not for bytes")

    async def score(finished: FinishedCase) -> bool:
        return compiled.search(finished.text) is not None

    options = {"pattern": compiled.pattern, "flags": compiled.flags}
    return Evaluator(name, version_of_options("matches", options), score)


def _yes_or_no(is_so: bool, comment: str) -> Score:
    return Score(1.0) if is_so else Score(0.0, comment=comment)


def _checked_data(option: str, value: Any) -> Any:
    try:
        return json_copy(value, option)
    except NotJSONDataError as error:
        raise InvalidOptionError(option=option, reason=str(error)) from error


def _keys(data: Mapping[str, Any] | list[Any]) -> list[str]:
    return [*data] if isinstance(data, Mapping) else [str(index) for index in range(len(data))]


def _at(data: Any, path: list[str]) -> Any:
    for step in path:
        if isinstance(data, Mapping) and step in data:
            data = data[step]
        elif isinstance(data, list) and step.isdecimal() and int(step) < len(data):
            data = data[int(step)]
        else:
            return _MISSING
    return data


def _shown(value: Any) -> str:
    return "missing" if value is _MISSING else shown(json.dumps(value, ensure_ascii=False))[1:-1]
