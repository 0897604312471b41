"""The option ``--price``: what the tokens of a model cost."""

from __future__ import annotations

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
            model = ""
        if not model:
            raise InvalidOptionError(option="--price", reason=f"must be MODEL=IN,OUT, not {entry!r}")
        prices[model] = (given, returned)
    return prices
