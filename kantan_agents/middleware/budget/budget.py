"""``Budget``: limits on calls, tokens and cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

from agents import ModelResponse

from kantan_agents.agent.bridge.call_events import calls_begun
from kantan_agents.agent.bridge.named_tools import check_named_tools
from kantan_agents.core.interception import (
    Middleware,
    ModelCall,
    ModelNext,
    NamedTools,
    ToolCall,
    ToolNext,
    end_run_with,
)
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import BudgetExceededError, InvalidOptionError, UnknownUsageError
from kantan_agents.middleware.budget.ledger import (
    WITHOUT_USAGE,
    BudgetLedger,
    BudgetLimits,
    BudgetUse,
    Spent,
    cost_of,
    count_of,
    spent_by,
    spent_by_broken_off,
    spent_by_other,
)
from kantan_agents.models.origin import name_of
from kantan_agents.support.arguments import checked_int, checked_number
from kantan_agents.support.log import get_logger
from kantan_agents.tools.facts import facts_of_call
from kantan_agents.tools.guards.check import denies
from kantan_agents.traces.capture.playback import Playback, current_playback

Prices = Mapping[str, tuple[float, float]]
"""Prices of a million input and output tokens, by model name. ``"*"`` is the price of all other models."""

OnUnknownUsage = Literal["warn", "raise"]
"""``"warn"``: a warning is logged. ``"raise"``: this run and all further runs fail with E42."""

_log = get_logger("kantan_agents.middleware")


class Budget(Middleware):
    """Limits the calls, tokens and cost of all runs that share this object.

    Each call reserves its share before it is made, so concurrent runs cannot exceed a limit together, from
    any thread or event loop. If the remaining budget is too small, the call is not made and the run fails. A
    call beyond a ``per_tool`` limit does not fail the run: the model reads that the tool is used up.

    Model calls count once they are answered. They also count if a stream breaks off after the answer has
    started, or if the provider reports usage for a stream without an answer. Tool calls, including slash
    commands, count once they start, even if they fail; calls that the rules deny and hosted tools do not.
    Tokens and cost are known only after a call. With ``ModelSettings.max_tokens``, a call reserves that many
    output tokens. Without it, a call is made while any budget is left, and reserves the average of earlier
    calls. Tokens and cost can therefore exceed their limits by the use of running calls beyond their
    reservations. The limits on the number of calls are never exceeded.

    Cached input tokens cost like all others. A reported count that is negative or not a number is 0; the call
    then costs at least its reservation. A replay counts its recorded calls and usage from zero, and
    ``used()`` does not include them.

    Args:
        max_model_calls: Limit on model calls.
        max_tool_calls: Limit on tool calls.
        max_tokens: Limit on input and output tokens together. If you do not trust the provider to report its
            usage, limit calls instead.
        max_cost: Limit on cost, in the currency of ``prices``. Requires ``prices``.
        per_tool: Limits on the calls of single tools. The keys are entries as in the ``deny`` list of tool
            rules, such as ``"search"``, ``"mcp__github__*"`` or ``"bash(git push:*)"``; all calls that an
            entry covers count together. An entry must name a tool of an agent that has this middleware, or of
            an agent that it can reach; otherwise the run fails with E75 before a tool is called.
        prices: ``{model: (price of a million input tokens, of a million output tokens)}``; ``"*"`` is the
            price of all models that are not named. With ``max_cost``, a model without a price is not called.
            If a middleware inside of this one calls it, the highest price is charged.
        on_unknown_usage: The reaction if ``max_tokens`` or ``max_cost`` is set and an answer has no usage, so
            that it cannot be counted. ``"warn"`` logs a warning, once for each model, and charges the
            reserved amount. ``"raise"`` fails the run with E42, and rejects all further model calls until
            ``reset``.

    Raises:
        InvalidOptionError: E75, a limit is negative, infinite, ``nan`` or a bool, another argument has an
            invalid value, or there is no limit at all.
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
        on_unknown_usage: OnUnknownUsage = "warn",
    ) -> None:
        if on_unknown_usage not in get_args(OnUnknownUsage):
            reason = f'must be "warn" or "raise", not {on_unknown_usage!r}'
            raise InvalidOptionError(option="on_unknown_usage", reason=reason)
        self._prices = _checked_prices(prices or {})
        if max_cost is not None and not self._prices:
            raise InvalidOptionError(option="prices", reason="must be given with max_cost")
        limits = BudgetLimits(
            model_calls=_count("max_model_calls", max_model_calls),
            tool_calls=_count("max_tool_calls", max_tool_calls),
            tokens=_count("max_tokens", max_tokens),
            cost=None if max_cost is None else checked_number("max_cost", max_cost),
            per_tool=_checked_tools(per_tool or {}),
        )
        if not limits.any_set:
            reason = "must have at least one limit: without one, the budget would refuse nothing"
            raise InvalidOptionError(option="Budget", reason=reason)
        self._limits = limits
        self.named_tools = NamedTools("per_tool", limits.per_tool) if limits.per_tool else None
        self._ledger = BudgetLedger(limits)
        self._replayed: WeakKeyDictionary[Playback, BudgetLedger] = WeakKeyDictionary()
        self._on_unknown_usage = on_unknown_usage
        self._warned_of: set[tuple[str, str]] = set()

    def _ledger_of(self, run: Run) -> BudgetLedger:
        """A replay has its own ledger."""
        playback = None if run._tape is None else current_playback.get()
        if playback is None:
            return self._ledger
        return self._replayed.setdefault(playback, BudgetLedger(self._limits))

    def used(self) -> BudgetUse:
        """Return the usage so far, without calls in progress."""
        return self._ledger.use

    def reset(self) -> None:
        """Set all counts to zero. Calls in progress are counted when they end."""
        self._ledger.reset()
        self._warned_of.clear()

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Reserve the call's share, make the call, and record its usage.

        Raises:
            BudgetExceededError: E83, the remaining budget is too small.
            UnknownUsageError: E42, an answer has no usage, and ``on_unknown_usage`` is ``"raise"``.
            InvalidOptionError: E75, ``max_cost`` is set, but the model has no price.
        """
        ledger = self._ledger_of(call.run)
        try:
            most = count_of(getattr(call.settings, "max_tokens", None))
            price = self._price(call)
            cost = None if most is None else cost_of(price, 0, most)
            reserved = ledger.reserve_model_call(most, cost)
        except (BudgetExceededError, UnknownUsageError, InvalidOptionError) as error:
            # Otherwise the SDK turns an error inside an agent used as a tool into text for the outer model.
            end_run_with(call.run, error)
            raise
        spent: Spent | None = None
        begun, others = calls_begun(call.run), len(call._other_usage)
        try:
            answer = await call_next(call)
            if call._stored is not None:
                return answer  # from a cache: it cost nothing
            price = self._price_of_answer(call)
            spent = spent_by(answer, price, reserved, was_requested=calls_begun(call.run) > begun)
        except BaseException:
            if call.broken_off is not None:
                price = self._price_of_answer(call)
                spent = spent_by(call.broken_off, price, reserved, was_requested=True)
            elif call.has_begun:
                spent = spent_by_broken_off(reserved)
                self._warn("an answer broke off, so a budget cannot count it", call, charged=spent["tokens"])
            raise
        finally:
            ledger.release(reserved, {} if spent is None else {"model_calls": 1, **spent})
            for usage, is_complete in call._other_usage[others:]:
                price = self._price_of_answer(call)
                ledger.spend(spent_by_other(usage, price, reserved, is_complete=is_complete))
        if spent[WITHOUT_USAGE]:
            self._unknown_usage(call, price, ledger)
        return answer

    def _unknown_usage(self, call: ModelCall, price: tuple[float, float], ledger: BudgetLedger) -> None:
        what = "tokens" if self._limits.tokens is not None else "cost"
        if what == "cost" and (self._limits.cost is None or not any(price)):
            return
        if self._on_unknown_usage == "raise":
            error = UnknownUsageError(what=what, model=_model_name(call) or "the model")
            ledger.close(error)
            end_run_with(call.run, error)
            raise error
        self._warn("an answer has no usage, so a budget cannot count it", call)

    def _warn(self, message: str, call: ModelCall, **values: Any) -> None:
        """Log once for each model, if a limit depends on it."""
        limits = self._limits
        model = _model_name(call) or "the model"
        if (limits.tokens, limits.cost) == (None, None) or (message, model) in self._warned_of:
            return
        self._warned_of.add((message, model))
        limit = "tokens" if limits.tokens is not None else "cost"
        _log.warning(message, model=model, limit=limit, **values)

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Reserve and make the call; if its entry in ``per_tool`` is used up, return a message.

        Raises:
            BudgetExceededError: E83, ``max_tool_calls`` is reached.
            InvalidOptionError: E75, ``per_tool`` names a missing tool.
        """
        names = self.named_tools
        entries: list[str] = []
        if names is not None:
            if names.unmatched:  # inside another middleware, the names are not checked yet
                await check_named_tools(call.run, call.tool_context, [names])
            facts = facts_of_call(call)
            about = names.entries_about(facts)
            entries = [entry for entry, rules in about if await denies(rules, facts, call.arguments)]
        ledger = self._ledger_of(call.run)
        reserved = ledger.reserve_tool_call(call.name, entries)
        if isinstance(reserved, str):
            return _used_up(call.name, reserved, self._limits.per_tool[reserved])
        try:
            return await call_next(call)
        finally:
            ledger.release(reserved, reserved.amounts if call.refusal is None else {})

    def _price(self, call: ModelCall) -> tuple[float, float]:
        price = self._known_price(call)
        if price is None:
            if self._limits.cost is not None:
                reason = f"has no price for the model {_model_name(call)!r}"
                raise InvalidOptionError(option="prices", reason=reason)
            return (0.0, 0.0)
        return price

    def _price_of_answer(self, call: ModelCall) -> tuple[float, float]:
        """A middleware may have changed the model."""
        price = self._known_price(call)
        if price is not None or self._limits.cost is None:
            return price or (0.0, 0.0)
        self._warn("a model without a price has answered, so a budget charges the highest one", call)
        reading, writing = zip(*self._prices.values(), strict=True)
        return (max(reading), max(writing))

    def _known_price(self, call: ModelCall) -> tuple[float, float] | None:
        return self._prices.get(_model_name(call) or "", self._prices.get("*"))

    def __repr__(self) -> str:
        return f"Budget({self._limits!r}, used={self.used()!r})"


def _model_name(call: ModelCall) -> str | None:
    return call.model if isinstance(call.model, str) else name_of(call.model)


def _used_up(tool: str, entry: str, most: int) -> str:
    what = f"The tool {tool}" if entry == tool else f"The tool {tool}, like every call of {entry},"
    return f"{what} may be called {most} times, and that is used up. Go on without it."


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
