"""``Prices``: prices of models' tokens; ``UsageMetrics``: usage of model calls."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import attrs

from kantan_agents.core.usage import tokens_of
from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import shown

_PER: Final = 1_000_000


@attrs.frozen
class UsageMetrics:
    """The usage of a run.

    Attributes:
        model_calls: Number of model calls.
        input_tokens: Sum over the model calls.
        output_tokens: Sum over the model calls.
        seconds: Time spent in model calls; tools are answered immediately and not counted.
        cost: Price of the tokens, in the currency of the prices; None without prices for all models.
    """

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cost: float | None = None

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: UsageMetrics) -> UsageMetrics:
        has_cost = self.cost is not None and other.cost is not None
        return UsageMetrics(
            self.model_calls + other.model_calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.seconds + other.seconds,
            (self.cost or 0.0) + (other.cost or 0.0) if has_cost else None,
        )


@attrs.frozen
class Prices:
    """Prices of a million input and a million output tokens, by model."""

    of_models: Mapping[str, tuple[float, float]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, prices: Mapping[str, tuple[float, float]] | None) -> Prices:
        """Return the checked prices; E75 unless each is two numbers from 0."""
        if not isinstance(prices, (Mapping, type(None))):
            reason = f"must be a dict of (input, output) by model, not {shown(prices)}"
            raise InvalidOptionError(option="prices", reason=reason)
        for name, pair in (prices or {}).items():
            is_pair = isinstance(pair, (tuple, list)) and len(pair) == 2  # noqa: PLR2004 - input and output
            if not is_pair or not all(is_price(one) for one in pair):
                reason = f"of {name!r} must be (input, output) per million tokens, not {pair!r}"
                raise InvalidOptionError(option="prices", reason=reason)
        pairs = {name: (float(pair[0]), float(pair[1])) for name, pair in (prices or {}).items()}
        short = {name: name.rpartition("/")[2] for name in pairs}
        counts = Counter(short.values())
        # A name that two providers share is ambiguous without its provider.
        alone = {short[name]: pair for name, pair in pairs.items() if counts[short[name]] == 1}
        return cls({**alone, **pairs})

    @property
    def nothing(self) -> float | None:
        """The cost of no tokens: 0, or None without prices."""
        return 0.0 if self.of_models else None

    def cost(
        self, model: str | None, input_tokens: int, output_tokens: int, *, provider: str | None = None
    ) -> float | None:
        """Return the cost of tokens, cached or not; None if the model has no price."""
        if not input_tokens and not output_tokens:
            return self.nothing
        # A name for kantan-llm may have its provider as a prefix: "ollama/llama3.2".
        name = model or ""
        names = (f"{provider}/{name}", name, name.rpartition("/")[2])
        price = next((self.of_models[one] for one in names if one in self.of_models), None)
        if price is None:
            return None
        return (input_tokens * price[0] + output_tokens * price[1]) / _PER

    def figures(self, model: str | None, counted: Any, seconds: float = 0.0) -> UsageMetrics:
        """Return the usage of a model call, from its answer or event."""
        used = tokens_of(counted)
        return UsageMetrics(1, *used, seconds, self.cost(model, *used))


def is_price(price: object) -> bool:
    """Return whether a value is a finite number, 0 or more."""
    return isinstance(price, (int, float)) and not isinstance(price, bool) and 0 <= price < math.inf
