"""``BudgetLedger``: usage and reservations. Thread-safe.

Reported counts can neither refill nor break a budget.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from agents import ModelResponse

from kantan_agents.errors import BudgetExceededError, UnknownUsageError
from kantan_agents.support.ledger import Ledger, LimitReachedError, Reservation
from kantan_agents.support.log import get_logger

_MOST_TOKENS = 2**63 - 1
"""Larger counts are capped."""

_COUNTS = ("input_tokens", "output_tokens", "total_tokens")
_MILLION = 1_000_000

Spent = dict[str, float]
"""Usage of one model call: finite numbers, 0 or more."""

WITHOUT_USAGE = "calls_without_usage"
"""Counts calls with unknown usage, which are charged their reservation."""

# Prefixes of the amounts of a tool, and of an entry of ``per_tool``.
_TOOL = "calls of "
_ENTRY = "entry "
_log = get_logger("kantan_agents.middleware")


@attrs.frozen(kw_only=True)
class BudgetLimits:
    """None means unlimited."""

    model_calls: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    per_tool: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def any_set(self) -> bool:
        """Whether anything is limited."""
        limits = (self.model_calls, self.tool_calls, self.tokens, self.cost)
        return bool(self.per_tool) or any(limit is not None for limit in limits)


def _copied(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(counts)


@attrs.frozen(kw_only=True)
class BudgetUse:
    """Usage of a ``Budget``, not counting calls in progress.

    Attributes:
        model_calls: Model calls that were answered, or broke off after the answer had started.
        tool_calls: Tool calls that were started.
        input_tokens: Input tokens of all answered model calls.
        output_tokens: Output tokens of all answered model calls.
        tokens: Input and output tokens, or the provider's total where it is larger; for calls without usage,
            their reserved tokens.
        cost: Cost of the answered model calls, by the budget's prices.
        per_tool: Number of tool calls, by tool name.
        calls_without_usage: Model calls whose usage is unknown: the provider sent none, or the answer broke
            off. If it is 0, the tokens and the cost are complete.
    """

    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    tokens: int = 0
    cost: float = 0.0
    per_tool: Mapping[str, int] = attrs.field(factory=dict, converter=_copied)
    calls_without_usage: int = 0


class BudgetLedger(Ledger):
    """Counts usage, and reserves shares for calls in progress."""

    def __init__(self, limits: BudgetLimits) -> None:
        amounts = {name: getattr(limits, name) for name in ("model_calls", "tool_calls", "tokens", "cost")}
        super().__init__({**amounts, **{_ENTRY + entry: most for entry, most in limits.per_tool.items()}})
        self._closed: UnknownUsageError | None = None

    @property
    def use(self) -> BudgetUse:
        """The usage so far."""
        used: dict[str, Any] = self.used
        counts = {field.name: used[field.name] for field in attrs.fields(BudgetUse) if field.name in used}
        tools = {name.removeprefix(_TOOL): count for name, count in used.items() if name.startswith(_TOOL)}
        cost = min(used.get("cost", 0.0), sys.float_info.max)
        return BudgetUse(**{**counts, "cost": cost, "per_tool": tools})

    def reset(self) -> None:
        """Calls in progress are counted when they end."""
        super().reset()
        self._closed = None

    def close(self, reason: UnknownUsageError) -> None:
        """Reject model calls until ``reset``."""
        self._closed = reason

    def reserve_model_call(self, tokens: int | None, cost: float | None) -> Reservation:
        """Reserve output tokens and their cost; None reserves the average so far. E83, or E42 if closed."""
        if self._closed is not None:
            raise UnknownUsageError(what=self._closed.what, model=self._closed.model)
        used = self.used
        answered = max(used.get("model_calls", 0), 1)
        # A call of unknown size is allowed while any budget is left, and so is a call that costs nothing.
        wanted = {"model_calls": 1, "tokens": tokens or None, "cost": cost or None}
        assumed = {
            "tokens": -(-used.get("tokens", 0) // answered) if tokens is None else tokens,
            "cost": used.get("cost", 0.0) / answered if cost is None else cost,
        }
        try:
            return self.reserve(wanted, assumed)
        except LimitReachedError as reached:
            raise _exceeded(reached) from None

    def reserve_tool_call(self, tool: str, entries: Sequence[str] = ()) -> Reservation | str:
        """Reserve a tool call, or return the used-up entry. E83 if all calls are used up."""
        names = [*(_ENTRY + entry for entry in entries), "tool_calls", _TOOL + tool]
        try:
            return self.reserve(dict.fromkeys(names, 1))
        except LimitReachedError as reached:
            if reached.name.startswith(_ENTRY):
                return reached.name.removeprefix(_ENTRY)
            raise _exceeded(reached) from None


def _exceeded(reached: LimitReachedError) -> BudgetExceededError:
    taken = min(float(reached.taken), sys.float_info.max) if reached.name == "cost" else reached.taken
    return BudgetExceededError(what=reached.name.replace("_", " "), limit=reached.limit, used=taken)


def spent_by(answer: Any, price: tuple[float, float], reserved: Reservation, *, was_requested: bool) -> Spent:
    """Return the usage of an answered call.

    The report is untrusted: without one, the call costs its reservation, and with an invalid count at least
    that. If not ``was_requested``, a middleware created the answer, which uses no tokens.
    """
    usage = getattr(answer, "usage", None)
    reported = {name: getattr(usage, name, None) for name in _COUNTS}
    counts = {name: count_of(value) for name, value in reported.items()}
    wrong = [name for name, value in reported.items() if value is not None and counts[name] is None]
    read, written, total = (counts[name] or 0 for name in _COUNTS)
    tokens: float = max(total, read + written)
    cost = cost_of(price, read, written)
    if wrong:
        _log.warning("usage is not a number of tokens", counts=wrong, charged=reserved.amounts["tokens"])
    # No answer takes 0 tokens: the provider has sent no counts.
    used_a_model = was_requested or bool(getattr(usage, "requests", None))
    is_known = not wrong and (bool(tokens) or not used_a_model)
    if not is_known:
        tokens, cost = max(tokens, reserved.amounts["tokens"]), max(cost, reserved.amounts["cost"])
    return {
        "input_tokens": read,
        "output_tokens": written,
        "tokens": min(tokens, _MOST_TOKENS),
        "cost": cost,
        WITHOUT_USAGE: not is_known,
    }


def spent_by_broken_off(reserved: Reservation) -> Spent:
    """The usage of a broken-off answer is unknown, so its reservation is charged."""
    return {name: reserved.amounts[name] for name in ("tokens", "cost")} | {WITHOUT_USAGE: True}


def spent_by_other(
    usage: Any, price: tuple[float, float], reserved: Reservation, *, is_complete: bool
) -> Spent:
    """Usage of another request for the same answer."""
    spent = spent_by(ModelResponse([], usage, None), price, reserved, was_requested=True)
    return spent if is_complete else {**spent, WITHOUT_USAGE: True}


def count_of(value: Any) -> int | None:
    """None if invalid; at most ``_MOST_TOKENS``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:  # `not` catches NaN
        return None
    if value >= _MOST_TOKENS:
        return _MOST_TOKENS
    return math.ceil(value)


def cost_of(price: tuple[float, float], read: int, written: int) -> float:
    """Return the cost, at most the largest float."""
    return min(price[0] * read / _MILLION + price[1] * written / _MILLION, sys.float_info.max)
