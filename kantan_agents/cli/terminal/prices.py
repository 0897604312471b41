"""The option ``--price``: what the tokens of a model cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Optional

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


def read_prices(entries: Sequence[str] | None) -> dict[str, tuple[float, float]]:
    """Return the prices that ``MODEL=IN,OUT`` describes.

    Raises:
        InvalidOptionError: E75, an entry cannot be read.
    """
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
