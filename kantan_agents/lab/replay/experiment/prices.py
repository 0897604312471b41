"""Prices of models, and the budget of an experiment."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from kantan_agents.errors import InvalidOptionError, ReplayBudgetError
from kantan_agents.support.arguments import checked_int, shown

_PER: Final = 1_000_000


@attrs.frozen
class Prices:
    """Prices of input and output tokens by the name of the model.

    Attributes:
        of_models: For each model, the prices of a million input tokens and of a million output tokens.
    """

    of_models: Mapping[str, tuple[float, float]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, prices: Mapping[str, tuple[float, float]] | None) -> Prices:
        """Return the prices, checked.

        Raises:
            InvalidOptionError: E75, a price is not two numbers from 0.
        """
        if not isinstance(prices, (Mapping, type(None))):
            reason = f"must be a dict of (input, output) by model, not {shown(prices)}"
            raise InvalidOptionError(option="prices", reason=reason)
        for name, pair in (prices or {}).items():
            is_pair = isinstance(pair, (tuple, list)) and len(pair) == 2  # noqa: PLR2004 - input and output
            if not is_pair or not all(_is_price(one) for one in pair):
                reason = f"of {name!r} must be (input, output) per million tokens, not {pair!r}"
                raise InvalidOptionError(option="prices", reason=reason)
        pairs = {name: (float(pair[0]), float(pair[1])) for name, pair in (prices or {}).items()}
        short = {name: name.rpartition("/")[2] for name in pairs}
        counts = Counter(short.values())
        # Without its provider, a name that two of them have says nothing.
        alone = {short[name]: pair for name, pair in pairs.items() if counts[short[name]] == 1}
        return cls({**alone, **pairs})

    @property
    def nothing(self) -> float | None:
        """The cost of no tokens: 0, or None without any price."""
        return 0.0 if self.of_models else None

    def cost(
        self, model: str | None, input_tokens: int, output_tokens: int, *, provider: str | None = None
    ) -> float | None:
        """Return the cost of tokens; None if the model has no price. Cached tokens cost as others do."""
        if not input_tokens and not output_tokens:
            return self.nothing
        # A name for kantan-llm may begin with its provider: "ollama/llama3.2".
        name = model or ""
        names = (f"{provider}/{name}", name, name.rpartition("/")[2])
        price = next((self.of_models[one] for one in names if one in self.of_models), None)
        if price is None:
            return None
        return (input_tokens * price[0] + output_tokens * price[1]) / _PER


def _is_price(price: object) -> bool:
    return isinstance(price, (int, float)) and not isinstance(price, bool) and 0 <= price < math.inf


@attrs.frozen
class SpendingLimit:
    """The budget of an experiment.

    Attributes:
        max_tokens: The most input and output tokens; None for no limit.
        max_cost: The most money, in the currency of the prices; None for no limit.
    """

    max_tokens: int | None = None
    max_cost: float | None = None

    @classmethod
    def of(cls, max_tokens: int | None, max_cost: float | None, prices: Prices) -> SpendingLimit:
        """Return the limit, checked.

        Raises:
            InvalidOptionError: E75, it is not a number from 1, or money is limited without prices.
        """
        if max_tokens is not None:
            checked_int("max_tokens", max_tokens, 1)
        if max_cost is not None:
            if not _is_price(max_cost):
                raise InvalidOptionError(
                    option="max_cost", reason=f"must be a number from 0, not {max_cost!r}"
                )
            if not prices.of_models:
                reason = "needs prices: prices={'model': (input, output)} per million tokens"
                raise InvalidOptionError(option="max_cost", reason=reason)
        return cls(max_tokens, max_cost)

    @property
    def is_set(self) -> bool:
        """Whether there is a limit at all."""
        return self.max_tokens is not None or self.max_cost is not None


@attrs.frozen
class Estimate:
    """What a run is expected to use.

    Attributes:
        tokens: Input and output tokens; None if it is not known.
        cost: Their price; None if it is not known.
    """

    tokens: float | None
    cost: float | None


class ExperimentLedger:
    """Keeps the tokens and the money of an experiment within its limit.

    Args:
        limit: The limit.
    """

    def __init__(self, limit: SpendingLimit) -> None:
        self._limit = limit
        self._spent = [0.0, 0.0]
        self._reserved = [0.0, 0.0]

    def check(self, estimates: Iterable[Estimate]) -> None:
        """Check that all runs together are expected to stay within the limit.

        Raises:
            ReplayBudgetError: E98, they are not, or nothing is known about one of them.
        """
        listed = list(estimates)
        for what, most, values in (
            ("tokens", self._limit.max_tokens, [one.tokens for one in listed]),
            ("of cost", self._limit.max_cost, [one.cost for one in listed]),
        ):
            if most is None:
                continue
            if any(value is None for value in values):
                reason = "the recorded runs do not say what they used, or a model has no price"
                raise ReplayBudgetError(reason=f"it cannot be estimated, as {reason}")
            total = sum(value or 0 for value in values)
            if total > most:
                reason = (
                    f"about {total:,.6g} {what} for {len(listed)} runs, and the limit is {most:,.6g}; "
                    "take a smaller sample, or raise the limit"
                )
                raise ReplayBudgetError(reason=reason)

    def reserve(self, estimate: Estimate) -> bool:
        """Reserve what a run is expected to use; return False if that is too much with the others."""
        wanted = (estimate.tokens or 0.0, estimate.cost or 0.0)
        for most, spent, reserved, more in zip(
            (self._limit.max_tokens, self._limit.max_cost), self._spent, self._reserved, wanted, strict=True
        ):
            # Sums of the same floats in another order differ in their last digits.
            if most is not None and spent + reserved + more > most * (1 + 1e-9):
                return False
        self._reserved = [one + more for one, more in zip(self._reserved, wanted, strict=True)]
        return True

    def release(self, estimate: Estimate) -> None:
        """Give back what was reserved for a run that has ended."""
        wanted = (estimate.tokens or 0.0, estimate.cost or 0.0)
        self._reserved = [max(one - less, 0.0) for one, less in zip(self._reserved, wanted, strict=True)]

    def spend(self, tokens: int, cost: float | None) -> None:
        """Count what a model call has used; a cost of None, without a price, exceeds each limit of cost."""
        self._spent = [self._spent[0] + tokens, self._spent[1] + (math.inf if cost is None else cost)]

    @property
    def tokens(self) -> float:
        """The tokens that were really used, also by runs that were not finished."""
        return self._spent[0]

    @property
    def left(self) -> Estimate:
        """What is neither used nor reserved; None where there is no limit."""
        tokens, cost = (
            None if most is None else max(most - spent - reserved, 0.0)
            for most, spent, reserved in zip(
                (self._limit.max_tokens, self._limit.max_cost), self._spent, self._reserved, strict=True
            )
        )
        return Estimate(tokens, cost)

    @property
    def may_spend(self) -> bool:
        """Whether what was really used is still within the limit."""
        limits = (self._limit.max_tokens, self._limit.max_cost)
        # With a limit of 0, models that cost nothing may be asked.
        return all(
            most is None or spent < most or spent == most == 0
            for most, spent in zip(limits, self._spent, strict=True)
        )
