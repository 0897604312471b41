"""``BudgetLedger``: the usage and the reservations of a ``Budget``. It is thread-safe.

The usage of a call is what its model reports, as counts that can neither refill nor break a budget.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import attrs
from agents import ModelResponse

from kantan_agents.errors import BudgetExceededError, UnknownUsageError
from kantan_agents.support.log import get_logger

_MOST_TOKENS = 2**63 - 1
"""Larger counts are counted as this many tokens."""

_COUNTS = ("input_tokens", "output_tokens", "total_tokens")
_MILLION = 1_000_000
_log = get_logger("kantan_agents.middleware")


@attrs.frozen(kw_only=True)
class BudgetLimits:
    """The limits of a ``Budget``; None means unlimited."""

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
        model_calls: Model calls that were answered, or broke off after the answer had begun.
        tool_calls: Tool calls that were started.
        input_tokens: Input tokens of all answered model calls.
        output_tokens: Output tokens of all answered model calls.
        tokens: Input and output tokens, or the provider's total where it is larger; for calls without usage,
            the tokens that were reserved for them.
        cost: Cost of the answered model calls, by the budget's prices.
        per_tool: Number of tool calls, by tool name.
        calls_without_usage: Those of the model calls whose usage is unknown: the provider sent none, or the
            answer broke off. If it is 0, the tokens and the cost are complete.
    """

    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    tokens: int = 0
    cost: float = 0.0
    per_tool: Mapping[str, int] = attrs.field(factory=dict, converter=_copied)
    calls_without_usage: int = 0


@attrs.frozen(kw_only=True)
class Spent:
    """Usage of one model call: finite numbers, 0 or more.

    Attributes:
        is_known: Whether the provider has reported it. Otherwise it is what was reserved for the call.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    tokens: int
    cost: float
    is_known: bool = True


@attrs.frozen(eq=False)
class Reserved:
    """A model call in progress, with the tokens and cost reserved for it."""

    tokens: int
    cost: float


@attrs.frozen(eq=False)
class ReservedTool:
    """A tool call in progress, with the entries of ``per_tool`` that cover it."""

    tool: str
    entries: tuple[str, ...] = ()


class BudgetLedger:
    """Counts usage and reserves a share of the limits for calls in progress."""

    def __init__(self, limits: BudgetLimits) -> None:
        self._limits = limits
        self._lock = Lock()
        self._used = BudgetUse()
        self._models: set[Reserved] = set()
        self._tools: set[ReservedTool] = set()
        self._by_entry: dict[str, int] = {}
        self._closed: UnknownUsageError | None = None

    @property
    def used(self) -> BudgetUse:
        """A copy of the usage so far."""
        return attrs.evolve(self._used)

    @property
    def in_progress(self) -> int:
        """Number of calls in progress, each with a reservation."""
        return len(self._models) + len(self._tools)

    def reset(self) -> None:
        """Set all counts to zero. Calls in progress are counted when they end."""
        with self._lock:
            self._used = BudgetUse()
            self._by_entry = {}
            self._closed = None

    def close(self, reason: UnknownUsageError) -> None:
        """Refuse all further model calls until ``reset``."""
        with self._lock:
            self._closed = reason

    def reserve_model_call(self, tokens: int | None, cost: float | None) -> Reserved:
        """Reserve tokens and cost for a model call.

        Args:
            tokens: Maximum number of output tokens; None if unknown, which reserves the average so far.
            cost: Cost of that many output tokens; None if unknown.

        Raises:
            BudgetExceededError: E83, the remaining budget is too small.
            UnknownUsageError: E42, the ledger is closed.
        """
        limits = self._limits
        with self._lock:
            if self._closed is not None:
                raise UnknownUsageError(what=self._closed.what, model=self._closed.model)
            used, in_progress = self._used, self._models
            _check("model calls", limits.model_calls, used.model_calls + len(in_progress), 1)
            reserved_tokens = sum(call.tokens for call in in_progress)
            _check("tokens", limits.tokens, used.tokens + reserved_tokens, tokens or 1)
            reserved_cost = sum(call.cost for call in in_progress)
            _check("cost", limits.cost, used.cost + reserved_cost, cost or 0.0)
            answered = max(used.model_calls, 1)
            reserved = Reserved(
                tokens=-(-used.tokens // answered) if tokens is None else tokens,
                cost=used.cost / answered if cost is None else cost,
            )
            in_progress.add(reserved)
        return reserved

    def settle_model_call(self, reserved: Reserved, spent: Spent | None) -> None:
        """Replace the reservation of a call with its usage; None if the call was not answered."""
        with self._lock:
            self._models.discard(reserved)
            if spent is not None:
                self._count(spent, calls=1)

    def add_model_usage(self, spent: Spent) -> None:
        """Count the tokens and the cost of one more request for a call that is counted already."""
        with self._lock:
            self._count(spent)

    def _count(self, spent: Spent, calls: int = 0) -> None:
        used = self._used
        self._used = attrs.evolve(
            used,
            model_calls=used.model_calls + calls,
            input_tokens=used.input_tokens + spent.input_tokens,
            output_tokens=used.output_tokens + spent.output_tokens,
            tokens=used.tokens + spent.tokens,
            cost=min(used.cost + spent.cost, sys.float_info.max),
            calls_without_usage=used.calls_without_usage + (not spent.is_known),
        )

    def reserve_tool_call(self, tool: str, entries: Sequence[str] = ()) -> ReservedTool | str:
        """Reserve a tool call; return the entry whose limit is reached, if there is one.

        Args:
            tool: Name of the tool.
            entries: The entries of ``per_tool`` that cover the call.

        Raises:
            BudgetExceededError: E83, the limit of all tool calls is reached.
        """
        limits = self._limits
        with self._lock:
            for entry in entries:
                in_progress = sum(entry in call.entries for call in self._tools)
                if self._by_entry.get(entry, 0) + in_progress >= limits.per_tool[entry]:
                    return entry
            _check("tool calls", limits.tool_calls, self._used.tool_calls + len(self._tools), 1)
            reserved = ReservedTool(tool, tuple(entries))
            self._tools.add(reserved)
        return reserved

    def settle_tool_call(self, reserved: ReservedTool, *, was_run: bool) -> None:
        """Count a tool call, or release its reservation if the tool was not run."""
        with self._lock:
            self._tools.discard(reserved)
            if was_run:
                for entry in reserved.entries:
                    self._by_entry[entry] = self._by_entry.get(entry, 0) + 1
                used, tool = self._used, reserved.tool
                per_tool = {**used.per_tool, tool: used.per_tool.get(tool, 0) + 1}
                self._used = attrs.evolve(used, tool_calls=used.tool_calls + 1, per_tool=per_tool)


def _check(what: str, limit: float | None, used: float, wanted: float) -> None:
    # A call of unknown size is allowed while any budget is left.
    if limit is not None and (used + wanted > limit or used >= limit):
        raise BudgetExceededError(what=what, limit=limit, used=used)


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
        tokens=min(tokens, _MOST_TOKENS),
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
    """Return a number of tokens, at most ``_MOST_TOKENS``; None if the value is not one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:  # `not` catches NaN
        return None
    if value >= _MOST_TOKENS:
        return _MOST_TOKENS
    return math.ceil(value)


def cost_of(price: tuple[float, float], read: int, written: int) -> float:
    """Return the cost of tokens, at most the largest float."""
    return min(price[0] * read / _MILLION + price[1] * written / _MILLION, sys.float_info.max)
