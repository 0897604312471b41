"""The budget of an experiment: its limits of tokens and cost, and what its runs are expected to use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kantan_agents.errors import InvalidOptionError, ReplayBudgetError
from kantan_agents.lab.replay.experiment.prices import Prices, is_price
from kantan_agents.lab.replay.recording import Recording
from kantan_agents.support.arguments import checked_int
from kantan_agents.support.ledger import Amounts


def spending_limits(max_tokens: int | None, max_cost: float | None, prices: Prices) -> Mapping[str, float]:
    """Return the limits that are set, checked, as ``tokens`` and ``cost``.

    Raises:
        InvalidOptionError: E75, it is not a number from 1, or money is limited without prices.
    """
    if max_tokens is not None:
        checked_int("max_tokens", max_tokens, 1)
    if max_cost is not None:
        if not is_price(max_cost):
            raise InvalidOptionError(option="max_cost", reason=f"must be a number from 0, not {max_cost!r}")
        if not prices.of_models:
            reason = "needs prices: prices={'model': (input, output)} per million tokens"
            raise InvalidOptionError(option="max_cost", reason=reason)
    limits = {"tokens": max_tokens, "cost": max_cost}
    return {name: most for name, most in limits.items() if most is not None}


def recorded_use(recording: Recording, prices: Prices, models: Mapping[str, str] | None = None) -> Amounts:
    """Return the ``tokens`` and the ``cost`` of a recorded run; None if they are not known.

    Args:
        recording: The run.
        prices: Prices of models.
        models: The models to take the prices of, by agent; those that were asked otherwise.
    """
    tokens, cost = 0, prices.nothing
    for run in recording.runs:
        for call in run.model_calls:
            usage: Mapping[str, Any] = {} if call.answer is None else call.answer.usage
            used = int(usage.get("input_tokens") or 0), int(usage.get("output_tokens") or 0)
            tokens += sum(used)
            price = prices.cost((models or {}).get(call.agent, call.model), *used)
            cost = None if cost is None or price is None else cost + price
    return {"tokens": tokens or None, "cost": cost if tokens else None}


def check_estimates(limits: Mapping[str, float], estimates: Iterable[Amounts]) -> None:
    """Check that all runs together are expected to stay within the limits.

    Raises:
        ReplayBudgetError: E98, they are not, or nothing is known about one of them.
    """
    listed = list(estimates)
    for name, most in limits.items():
        values = [one[name] for one in listed]
        if None in values:
            reason = "the recorded runs do not say what they used, or a model has no price"
            raise ReplayBudgetError(reason=f"it cannot be estimated, as {reason}")
        total = sum(value or 0 for value in values)
        if total > most:
            what = "of cost" if name == "cost" else name
            reason = (
                f"about {total:,.6g} {what} for {len(listed)} runs, and the limit is {most:,.6g}; "
                "take a smaller sample, or raise the limit"
            )
            raise ReplayBudgetError(reason=reason)
