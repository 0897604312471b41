"""What a ``Budget`` has used and what it has promised; plain arithmetic, safe in any thread."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

import attrs

from kantan_agents.errors import BudgetExceededError


@attrs.frozen(kw_only=True)
class Limits:
    """The most of each that may be used; None is no limit."""

    model_calls: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    per_tool: Mapping[str, int] = attrs.field(factory=dict)


def _copied(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(counts)


@attrs.frozen(kw_only=True)
class BudgetUse:
    """What has been used of a ``Budget``, without the calls that are under way.

    Attributes:
        model_calls: Model calls that were answered.
        tool_calls: Tool calls that were run.
        input_tokens: Tokens the models have read.
        output_tokens: Tokens they have written.
        tokens: Both, as the providers add them up.
        cost: What the answers cost by the budget's prices.
        per_tool: Tool calls by the tool's name.
    """

    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    tokens: int = 0
    cost: float = 0.0
    per_tool: Mapping[str, int] = attrs.field(factory=dict, converter=_copied)


@attrs.frozen(kw_only=True)
class Spent:
    """What one model call has used."""

    input_tokens: int
    output_tokens: int
    tokens: int
    cost: float


@attrs.frozen(eq=False)
class Reserved:
    """A model call that is under way, and what is kept for it."""

    tokens: int
    cost: float


@attrs.frozen(eq=False)
class ReservedTool:
    """A tool call that is under way."""

    tool: str


class Ledger:
    """Counts what is used, and keeps room for what is under way."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = Lock()
        self._used = BudgetUse()
        self._models: set[Reserved] = set()
        self._tools: set[ReservedTool] = set()

    @property
    def used(self) -> BudgetUse:
        """What has been used; a copy."""
        return attrs.evolve(self._used)

    def reset(self) -> None:
        """Begin at nothing; calls that are under way will be counted."""
        with self._lock:
            self._used = BudgetUse()

    def reserve_model_call(self, tokens: int | None, cost: float | None) -> Reserved:
        """Keep room for a model call.

        Args:
            tokens: The most it may write; None if nobody knows, then the average is kept for it.
            cost: What writing them costs; None if nobody knows.

        Raises:
            BudgetExceededError: E83, there is no room.
        """
        limits = self._limits
        with self._lock:
            used, under_way = self._used, self._models
            _check("model calls", limits.model_calls, used.model_calls + len(under_way), 1)
            kept = sum(reserved.tokens for reserved in under_way)
            _check("tokens", limits.tokens, used.tokens + kept, tokens or 1)
            kept_cost = sum(reserved.cost for reserved in under_way)
            _check("cost", limits.cost, used.cost + kept_cost, cost or 0.0)
            answered = max(used.model_calls, 1)
            reserved = Reserved(
                tokens=-(-used.tokens // answered) if tokens is None else tokens,
                cost=used.cost / answered if cost is None else cost,
            )
            under_way.add(reserved)
        return reserved

    def settle_model_call(self, reserved: Reserved, spent: Spent) -> None:
        """Put what a call has used in the place of what was kept for it."""
        with self._lock:
            self._models.discard(reserved)
            used = self._used
            self._used = attrs.evolve(
                used,
                model_calls=used.model_calls + 1,
                input_tokens=used.input_tokens + spent.input_tokens,
                output_tokens=used.output_tokens + spent.output_tokens,
                tokens=used.tokens + spent.tokens,
                cost=used.cost + spent.cost,
            )

    def release_model_call(self, reserved: Reserved) -> None:
        """Give back what was kept for a call that has had no answer."""
        with self._lock:
            self._models.discard(reserved)

    def reserve_tool_call(self, tool: str) -> ReservedTool | None:
        """Keep room for a tool call; None if this tool has been called as often as it may.

        Raises:
            BudgetExceededError: E83, no tool may be called any more.
        """
        limits = self._limits
        with self._lock:
            under_way = sum(reserved.tool == tool for reserved in self._tools)
            most = limits.per_tool.get(tool)
            if most is not None and self._used.per_tool.get(tool, 0) + under_way >= most:
                return None
            _check("tool calls", limits.tool_calls, self._used.tool_calls + len(self._tools), 1)
            reserved = ReservedTool(tool)
            self._tools.add(reserved)
        return reserved

    def settle_tool_call(self, reserved: ReservedTool, *, was_run: bool) -> None:
        """Count a tool call, or give it back if it was not made after all."""
        with self._lock:
            self._tools.discard(reserved)
            if was_run:
                used, tool = self._used, reserved.tool
                per_tool = {**used.per_tool, tool: used.per_tool.get(tool, 0) + 1}
                self._used = attrs.evolve(used, tool_calls=used.tool_calls + 1, per_tool=per_tool)


def _check(what: str, limit: float | None, used: float, wanted: float) -> None:
    # Whoever cannot say what a call costs may make it as long as anything is left.
    if limit is not None and (used + wanted > limit or used >= limit):
        raise BudgetExceededError(what=what, limit=limit, used=used)
