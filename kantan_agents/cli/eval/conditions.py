"""The conditions of ``--fail-if``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, cast

import attrs
import typer

from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.nearest import nearest

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation import Comparison

_OPTION: Final = "--fail-if"
_KINDS: Final = ("worse", "not-better")
_OF_FINISHED_RUNS: Final = ("latency", "tokens", "cost")


@attrs.frozen
class Condition:
    """A condition that a comparison must not meet; ``"not-better"`` includes "cannot tell"."""

    kind: Literal["worse", "not-better"]
    metric: str

    def why_met(self, comparison: Comparison) -> str | None:
        """Return why a comparison meets it, or None.

        It is also met without any score, since nothing was checked, or if more runs of ``b`` than of ``a``
        failed and the metric excludes them.
        """
        one = comparison[self.metric]
        if not one.cases:
            return f"nothing was checked: {one.text}"
        if one.verdict == "worse" or (self.kind == "not-better" and one.verdict != "better"):
            return one.text
        before, after = comparison.failed[one.a], comparison.failed[one.b]
        if comparison.missing == "worst" and self.metric in _OF_FINISHED_RUNS and after > before:
            runs = f"{after} failed {'run' if after == 1 else 'runs'} of {one.b}, {before} of {one.a}"
            return f"{one.metric}: {runs}, and it is that of finished runs only"
        return None

    def why_never(self, comparison: Comparison) -> str | None:
        """Return why nothing can meet it, or None."""
        one = comparison[self.metric]
        if self.kind == "not-better" or self.why_met(comparison) is not None:
            return None
        if not one.fewest:
            return f"no verdict on {one.b} is possible: {one.reason}"
        if one.independent >= one.fewest:
            return None
        have = "case" if one.independent == 1 else "cases"
        return f"with {one.independent} independent {have} it can never be met; it needs {one.fewest}"

    def __str__(self) -> str:
        return f"{self.kind}:{self.metric}"


def read_conditions(entries: Sequence[str]) -> list[Condition]:
    """Return the conditions, as ``worse:METRIC``."""
    conditions = []
    for entry in entries:
        kind, _, metric = entry.partition(":")
        if kind not in _KINDS or not metric:
            reason = f"must be worse:METRIC or not-better:METRIC, not {entry!r}"
            raise InvalidOptionError(option=_OPTION, reason=reason)
        conditions.append(Condition(cast("Literal['worse', 'not-better']", kind), metric))
    return conditions


def check_conditions(conditions: Sequence[Condition], comparisons: Sequence[Comparison]) -> None:
    """Check that all conditions can be met."""
    names = list(dict.fromkeys(one.metric for comparison in comparisons for one in comparison))
    for condition in conditions:
        if condition.metric not in names:
            near = nearest(condition.metric, names)
            hint = f"did you mean {near!r}?" if near is not None else f"there are {', '.join(names)}"
            reason = f"{condition}: this metric is not compared; {hint}"
            raise InvalidOptionError(option=_OPTION, reason=reason)
        for comparison in comparisons:
            never = condition.why_never(comparison)
            if never is not None:
                raise InvalidOptionError(option=_OPTION, reason=f"{condition}: {never}")


def exit_if_met(conditions: Sequence[Condition], comparisons: Sequence[Comparison]) -> None:
    """Report which conditions are met, and why."""
    met = [
        f"failed {one} with {comparison.b}: {why}" if len(comparisons) > 1 else f"failed {one}: {why}"
        for comparison in comparisons
        for one in conditions
        for why in (one.why_met(comparison),)
        if why is not None
    ]
    for line in met:
        typer.echo(one_line(line), err=True)
    if met:
        raise typer.Exit(EXIT_FAILED)
