"""The options ``--price``, ``--max-tokens`` and ``--max-cost``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Final, Optional

import attrs
import typer

from kantan_agents.errors import InvalidOptionError

PriceOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--price",
        metavar="MODEL=IN,OUT",
        help="Prices of a million input and output tokens; may be repeated.",
        show_default=False,
    ),
]

TokensOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--max-tokens",
        metavar="N",
        min=1,
        help="Maximum number of tokens of all runs, with judges and failed attempts.",
        show_default=False,
    ),
]
CostOption = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(
        "--max-cost",
        metavar="AMOUNT",
        min=0,
        help="Maximum cost of all runs, as far as their models have a price.",
        show_default=False,
    ),
]


@attrs.frozen
class SpendingOptions:
    """The shared limits of an experiment's runs."""

    price: PriceOption = None
    max_tokens: TokensOption = None
    max_cost: CostOption = None

    def read(self) -> dict[str, Any]:
        """Return keyword arguments of ``evaluate`` and ``replay_cohort``."""
        check_has_prices(self.max_cost, self.price)
        return {
            "prices": read_prices(self.price),
            "max_tokens": self.max_tokens,
            "max_cost": self.max_cost,
        }


NO_LIMITS: Final = SpendingOptions()
"""No limits."""


def check_has_prices(max_cost: float | None, price: Sequence[str] | None) -> None:
    """Check that a cost limit has prices."""
    if max_cost is not None and not price:
        reason = "needs the prices of the models: --price MODEL=IN,OUT"
        raise InvalidOptionError(option="--max-cost", reason=reason)


def read_prices(entries: Sequence[str] | None) -> dict[str, tuple[float, float]]:
    """Return the prices that ``MODEL=IN,OUT`` describes."""
    prices: dict[str, tuple[float, float]] = {}
    for entry in entries or ():
        model, _, amounts = entry.rpartition("=")
        try:
            given, returned = (float(amount) for amount in amounts.split(","))
        except ValueError:
            model, given, returned = "", 0.0, 0.0
        if not model or not all(0 <= price < math.inf for price in (given, returned)):
            reason = f"must be MODEL=IN,OUT, with prices from 0, not {entry!r}"
            raise InvalidOptionError(option="--price", reason=reason)
        prices[model] = (given, returned)
    return prices
