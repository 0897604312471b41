"""Evaluators of the tool calls of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.dataset.json_data import NotJSONDataError, json_copy, same_data
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.evaluation.evaluators.versions import version_of_options
from kantan_agents.lab.evaluation.finished_case import FinishedCase
from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.lab.experiment.tool_use import ToolUse
from kantan_agents.support.arguments import checked_bool, shown


@attrs.frozen
class ExpectedCall:
    """An expected tool call; see ``call``.

    Attributes:
        name: Name of the tool.
        arguments: Arguments that it must have, among others.
    """

    name: str
    arguments: Mapping[str, Any] = attrs.field(factory=dict)

    def fits(self, use: ToolUse) -> bool:
        """Return whether a tool call matches."""
        if use.name != self.name:
            return False
        given = use.arguments if isinstance(use.arguments, Mapping) else {}
        return all(key in given and same_data(given[key], value) for key, value in self.arguments.items())

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={shown(value)}' for key, value in self.arguments.items())})"


def call(tool: str, /, **arguments: Any) -> ExpectedCall:
    """Return a tool call to look for: ``call("search", query="refund")``.

    Args:
        tool: Name of the tool.
        **arguments: Arguments that the call must have, with exactly these values; it may have others.

    Raises:
        InvalidOptionError: E75, the name is empty, or an argument is not JSON data.
    """
    if not isinstance(tool, str) or not tool.strip():
        raise InvalidOptionError(option="tool", reason=f"must be the name of a tool, not {shown(tool)}")
    try:
        return ExpectedCall(tool, json_copy(arguments, "arguments"))
    except NotJSONDataError as error:
        raise InvalidOptionError(option=tool, reason=str(error)) from error


def used_tools(
    *calls: str | ExpectedCall,
    in_order: bool = False,
    only: bool = False,
    attempts: bool = False,
    name: str = "used_tools",
) -> Evaluator:
    """Return an evaluator: has the run used these tools?

    Each call of the run counts for one expected call.

    Args:
        *calls: Names of tools, or calls with arguments from ``call``.
        in_order: Whether they must be in this order; other calls may be between them.
        only: Whether other calls fail; ``used_tools(only=True)`` expects no calls at all.
        attempts: Whether calls that the tool rules or a person denied count too.
        name: Name of the metric.

    Raises:
        InvalidOptionError: E75, a call is neither a name nor from ``call``, or there is none to expect.
    """
    for option, value in (("in_order", in_order), ("only", only), ("attempts", attempts)):
        checked_bool(option, value)
    wanted = tuple(_expected(one) for one in calls)
    if not wanted and not only:
        raise InvalidOptionError(option="calls", reason="name at least one tool, or use only=True for none")

    async def score(finished: FinishedCase) -> Score:
        uses = _counted(finished, attempts=attempts)
        matched = _matched_in_order(wanted, uses) if in_order else _matched(wanted, uses)
        missing = [str(one) for place, one in enumerate(wanted) if place not in matched]
        others = [use.name for place, use in enumerate(uses) if place not in matched.values()] if only else []
        return _listed({"missing": missing, "not expected": others})

    options = {
        "calls": [attrs.asdict(one) for one in wanted],
        "in_order": in_order,
        "only": only,
        "attempts": attempts,
    }
    return Evaluator(name, version_of_options("used_tools", options), score)


def not_used(*calls: str | ExpectedCall, attempts: bool = False, name: str = "not_used") -> Evaluator:
    """Return an evaluator: has the run used none of these tools?

    Args:
        *calls: Names of tools, or calls with arguments from ``call``.
        attempts: Whether calls that the tool rules or a person denied count too.
        name: Name of the metric.

    Raises:
        InvalidOptionError: E75, a call is neither a name nor from ``call``, or there is none.
    """
    checked_bool("attempts", attempts)
    unwanted = tuple(_expected(one) for one in calls)
    if not unwanted:
        raise InvalidOptionError(option="calls", reason="name at least one tool")

    async def score(finished: FinishedCase) -> Score:
        uses = _counted(finished, attempts=attempts)
        return _listed({"used": [str(one) for one in unwanted if any(map(one.fits, uses))]})

    options = {"calls": [attrs.asdict(one) for one in unwanted], "attempts": attempts}
    return Evaluator(name, version_of_options("not_used", options), score)


def _expected(given: Any) -> ExpectedCall:
    return given if isinstance(given, ExpectedCall) else call(given)


def _counted(finished: FinishedCase, *, attempts: bool) -> Sequence[ToolUse]:
    return [use for use in finished.tool_calls if attempts or not use.is_denied]


def _listed(problems: Mapping[str, Iterable[str]]) -> Score:
    comments = [f"{kind}: {', '.join(names)}" for kind, names in problems.items() if names]
    return Score(0.0, comment="; ".join(comments)) if comments else Score(1.0)


def _matched_in_order(wanted: Sequence[ExpectedCall], uses: Sequence[ToolUse]) -> dict[int, int]:
    """Return the earliest matches, by index."""
    matched: dict[int, int] = {}
    start = 0
    for place, one in enumerate(wanted):
        found = next((index for index in range(start, len(uses)) if one.fits(uses[index])), None)
        if found is None:
            break
        matched[place], start = found, found + 1
    return matched


def _matched(wanted: Sequence[ExpectedCall], uses: Sequence[ToolUse]) -> dict[int, int]:
    """Return as many matches as possible, by index.

    The first call that fits may be the only one for a later, stricter expectation.
    """
    owner: dict[int, int] = {}

    def assign(place: int, tried: set[int]) -> bool:
        for index, use in enumerate(uses):
            if index in tried or not wanted[place].fits(use):
                continue
            tried.add(index)
            if index not in owner or assign(owner[index], tried):
                owner[index] = place
                return True
        return False

    for place in range(len(wanted)):
        assign(place, set())
    return {place: index for index, place in owner.items()}
