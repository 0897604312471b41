"""``spent_by``: the usage that a model reports, as counts that cannot refill or break a budget."""

from __future__ import annotations

import math
import sys
from typing import Any

import attrs
from agents import ModelResponse

from kantan_agents.middleware.budget.ledger import Reserved, Spent
from kantan_agents.support.log import get_logger

MOST_TOKENS = 2**63 - 1
"""Larger counts are counted as this many tokens."""

_COUNTS = ("input_tokens", "output_tokens", "total_tokens")
_MILLION = 1_000_000
_log = get_logger("kantan_agents.middleware")


def spent_by(answer: Any, price: tuple[float, float], reserved: Reserved, *, was_requested: bool) -> Spent:
    """Return what an answered call has used.

    The report comes from outside. A call without a report costs what was reserved for it. A count that is not
    a number of tokens is 0 and is logged; the call then costs at least what was reserved for it.

    Args:
        answer: The model's answer.
        price: Price of a million input and output tokens.
        reserved: The reservation of the call.
        was_requested: Whether a model was called: an answer that a middleware has made uses no tokens.
    """
    usage = getattr(answer, "usage", None)
    reported = {name: getattr(usage, name, None) for name in _COUNTS}
    counts = {name: count_of(value) for name, value in reported.items()}
    wrong = [name for name, value in reported.items() if value is not None and counts[name] is None]
    read, written, total = (counts[name] or 0 for name in _COUNTS)
    tokens, cost = max(total, read + written), cost_of(price, read, written)
    if wrong:
        _log.warning("usage is not a number of tokens", counts=wrong, charged=reserved.tokens)
    # No answer takes 0 tokens: the counts are those of a provider that has sent none.
    used_a_model = was_requested or bool(getattr(usage, "requests", None))
    is_known = not wrong and (bool(tokens) or not used_a_model)
    if not is_known:
        tokens, cost = max(tokens, reserved.tokens), max(cost, reserved.cost)
    return Spent(
        input_tokens=read,
        output_tokens=written,
        tokens=min(tokens, MOST_TOKENS),
        cost=cost,
        is_known=is_known,
    )


def spent_by_broken_off(reserved: Reserved) -> Spent:
    """Return what a call has used whose answer had begun: what was reserved, as its usage is unknown."""
    return Spent(tokens=reserved.tokens, cost=reserved.cost, is_known=False)


def spent_by_other(usage: Any, price: tuple[float, float], reserved: Reserved, *, is_complete: bool) -> Spent:
    """Return what another request for the same answer has used, as far as it is known.

    Args:
        usage: Its usage.
        price: Price of a million input and output tokens.
        reserved: The reservation of the call.
        is_complete: Whether the usage is all that it has used.
    """
    spent = spent_by(ModelResponse([], usage, None), price, reserved, was_requested=True)
    return spent if is_complete else attrs.evolve(spent, is_known=False)


def count_of(value: Any) -> int | None:
    """Return a number of tokens, at most ``MOST_TOKENS``; None if the value is not one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:  # `not` catches NaN
        return None
    if value >= MOST_TOKENS:
        return MOST_TOKENS
    return math.ceil(value)


def cost_of(price: tuple[float, float], read: int, written: int) -> float:
    """Return the cost of tokens, at most the largest float."""
    return min(price[0] * read / _MILLION + price[1] * written / _MILLION, sys.float_info.max)
