"""``Budget``: how many calls, tokens and how much money runs may use, together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents import ModelResponse, Usage

from kantan_agents.bridge.model_calls import name_of
from kantan_agents.errors import BudgetExceededError, InvalidOptionError
from kantan_agents.interception import (
    Middleware,
    ModelCall,
    ModelNext,
    ToolCall,
    ToolNext,
    end_run_with,
)
from kantan_agents.middleware.budget.ledger import BudgetUse, Ledger, Limits, Spent
from kantan_agents.support.arguments import checked_int, checked_number

Prices = Mapping[str, tuple[float, float]]
"""Of each model by its name, what a million tokens cost: read, written. ``"*"`` is any other model."""

_MILLION = 1_000_000


class Budget(Middleware):
    """Limits what the runs that share it may use.

    Room is kept for a call before it is made, so runs at the same time do not exceed a limit together. A call
    for which there is no room is not made, and its run ends; what ``per_tool`` limits is told to the model
    instead, and the run goes on.

    Model calls count when they are answered, tool calls when they have been started, whatever becomes of
    them. Tokens and cost are known only after a call. Room is kept for ``ModelSettings.max_tokens`` if that
    is set; else a call is made as long as anything is left, and room is kept for what the calls before it
    have used on average. So tokens and cost may be exceeded by what the calls under way use beyond what was
    kept for them. The numbers of calls are never exceeded.

    Args:
        max_model_calls: Model calls.
        max_tool_calls: Tool calls.
        max_tokens: Tokens, read and written.
        max_cost: Money, in the currency of ``prices``.
        per_tool: Calls of single tools, by their names.
        prices: ``{model: (price of a million tokens read, of a million written)}``; ``"*"`` stands for models
            that are not named.

    Raises:
        InvalidOptionError: E75, an argument has a value it cannot have.
    """

    def __init__(
        self,
        max_model_calls: int | None = None,
        max_tool_calls: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        *,
        per_tool: Mapping[str, int] | None = None,
        prices: Prices | None = None,
    ) -> None:
        self._prices = _checked_prices(prices or {})
        if max_cost is not None and not self._prices:
            raise InvalidOptionError(option="prices", reason="must be given with max_cost")
        limits = Limits(
            model_calls=_count("max_model_calls", max_model_calls),
            tool_calls=_count("max_tool_calls", max_tool_calls),
            tokens=_count("max_tokens", max_tokens),
            cost=None if max_cost is None else checked_number("max_cost", max_cost),
            per_tool=_checked_tools(per_tool or {}),
        )
        self._limits = limits
        self._ledger = Ledger(limits)

    def used(self) -> BudgetUse:
        """Return what has been used so far, without the calls that are under way."""
        return self._ledger.used

    def reset(self) -> None:
        """Begin a new period with nothing used; calls that are under way count for it when they end."""
        self._ledger.reset()

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Keep room for the call, make it, and count what it has used.

        Raises:
            BudgetExceededError: E83, there is no room.
            InvalidOptionError: E75, the cost is limited and nobody knows the price of this model.
        """
        try:
            most: int | None = getattr(call.settings, "max_tokens", None)
            price = self._price(call)
            cost = None if most is None else price[1] * most / _MILLION
            reserved = self._ledger.reserve_model_call(most, cost)
        except (BudgetExceededError, InvalidOptionError) as error:
            end_run_with(call.run, error)  # an agent that is another's tool would have it made into a text
            raise
        try:
            answer = await call_next(call)
        except BaseException:
            self._ledger.release_model_call(reserved)
            raise
        usage = getattr(answer, "usage", None) or Usage()
        read, written = usage.input_tokens, usage.output_tokens
        price = self._price(call, or_nothing=True)  # another model may have answered
        spent = Spent(
            input_tokens=read,
            output_tokens=written,
            tokens=max(usage.total_tokens, read + written),
            cost=(price[0] * read + price[1] * written) / _MILLION,
        )
        self._ledger.settle_model_call(reserved, spent)
        return answer

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Keep room for the call and make it, or tell the model that this tool may not be called any more.

        Raises:
            BudgetExceededError: E83, there is no room for any tool call.
        """
        reserved = self._ledger.reserve_tool_call(call.name)
        if reserved is None:
            most = self._limits.per_tool[call.name]
            return f"The tool {call.name} may be called {most} times, and that is used up. Go on without it."
        try:
            return await call_next(call)
        finally:
            self._ledger.settle_tool_call(reserved, was_run=call.refusal is None)

    def _price(self, call: ModelCall, *, or_nothing: bool = False) -> tuple[float, float]:
        name = call.model if isinstance(call.model, str) else name_of(call.model)
        price = self._prices.get(name or "", self._prices.get("*"))
        if price is not None:
            return price
        if self._limits.cost is not None and not or_nothing:
            raise InvalidOptionError(option="prices", reason=f"has no price for the model {name!r}")
        return (0.0, 0.0)

    def __repr__(self) -> str:
        return f"Budget({self._limits!r}, used={self.used()!r})"


def _count(option: str, value: Any) -> int | None:
    return None if value is None else checked_int(option, value, 0)


def _checked_tools(per_tool: Any) -> dict[str, int]:
    if not isinstance(per_tool, Mapping) or not all(isinstance(name, str) for name in per_tool):
        raise InvalidOptionError(
            option="per_tool", reason=f"must be a mapping of tool names to ints, not {per_tool!r}"
        )
    return {name: checked_int(f"per_tool[{name!r}]", most, 0) for name, most in per_tool.items()}


def _checked_prices(prices: Any) -> dict[str, tuple[float, float]]:
    if not isinstance(prices, Mapping):
        raise InvalidOptionError(option="prices", reason=f"must be a mapping, not {prices!r}")
    checked = {}
    for name, pair in prices.items():
        option = f"prices[{name!r}]"
        if not isinstance(name, str) or not isinstance(pair, (tuple, list)) or len(pair) != 2:  # noqa: PLR2004
            raise InvalidOptionError(option=option, reason=f"must be (read, written), not {pair!r}")
        checked[name] = (checked_number(option, pair[0]), checked_number(option, pair[1]))
    return checked
