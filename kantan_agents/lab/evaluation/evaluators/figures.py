"""Evaluators of the seconds, tokens and cost of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.evaluation.evaluators.versions import version_of_options
from kantan_agents.lab.evaluation.finished_case import FinishedCase
from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.support.arguments import checked_number


def latency(most: float | None = None, *, name: str | None = None) -> Evaluator:
    """Return an evaluator of the seconds that the run took, or whether it took at most ``most``.

    Args:
        most: If given, the score is 1 up to it and 0 above.
        name: Name of the metric; by default ``"latency"``, with ``most`` ``"latency_limit"``.

    Raises:
        InvalidOptionError: E75, ``most`` is not a number of 0 or more.
    """
    return _figure("latency", lambda finished: finished.seconds, most, name, "s")


def tokens(most: float | None = None, *, name: str | None = None) -> Evaluator:
    """Return an evaluator of the input and output tokens of the run, or whether it used at most ``most``.

    Args:
        most: If given, the score is 1 up to it and 0 above.
        name: Name of the metric; by default ``"tokens"``, with ``most`` ``"tokens_limit"``.

    Raises:
        InvalidOptionError: E75, ``most`` is not a number of 0 or more.
    """

    def used(finished: FinishedCase) -> float:
        return finished.input_tokens + finished.output_tokens

    return _figure("tokens", used, most, name, "tokens")


def cost(most: float | None = None, *, name: str | None = None) -> Evaluator:
    """Return an evaluator of the cost of the run's model calls, or whether it was at most ``most``.

    It does not apply to runs whose cost is unknown because the evaluation has no prices.

    Args:
        most: If given, the score is 1 up to it and 0 above.
        name: Name of the metric; by default ``"cost"``, with ``most`` ``"cost_limit"``.

    Raises:
        InvalidOptionError: E75, ``most`` is not a number of 0 or more.
    """
    return _figure("cost", lambda finished: finished.cost, most, name, "")


def _figure(
    kind: str,
    figure: Callable[[FinishedCase], float | None],
    most: float | None,
    name: str | None,
    unit: str,
) -> Evaluator:
    limit = None if most is None else checked_number("most", most)

    async def score(finished: FinishedCase) -> Any:
        value = figure(finished)
        if value is None or limit is None:
            return value
        return Score(float(value <= limit), comment=f"{value:g} {unit}".strip())

    version = version_of_options(kind, {"most": limit})
    named = name if name is not None else kind if limit is None else f"{kind}_limit"
    return Evaluator(named, version, score, "lower" if limit is None else "higher")
