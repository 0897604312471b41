"""A chat's tokens and costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kantan_agents.cli.terminal.show_quantities import count_text, counted
from kantan_agents.core.events import Event
from kantan_agents.lab.experiment.prices import Prices

_SMALLEST: Final = 0.0001


class Costs:
    """Counts all model calls, even of subagents."""

    def __init__(self, prices: Mapping[str, tuple[float, float]]) -> None:
        self._prices = Prices.of(prices)
        self._tokens: dict[str, list[int]] = {}
        self._unknown = 0

    def see(self, event: Event) -> None:
        """Count an event."""
        if event.type != "model_call_finished" or event.usage is None:
            return
        counts = self._tokens.setdefault(event.model or "?", [0, 0])
        counts[0] += event.usage["input_tokens"]
        counts[1] += event.usage["output_tokens"]
        self._unknown += event.usage["requests_without_usage"]

    @property
    def model(self) -> str | None:
        """The last called model, or None."""
        return next(reversed(self._tokens), None)

    def lines(self) -> list[str]:
        """Return a line per model, and the total."""
        if not self._tokens:
            return ["No model was called yet."]
        lines: list[str] = []
        total = 0.0
        for model, (given, returned) in self._tokens.items():
            cost = self._prices.cost(model, given, returned)
            price = "" if cost is None else f", {_shown(cost)}"
            total += cost or 0.0
            lines.append(f"{model}: {count_text(given)} in, {count_text(returned)} out{price}")
        if self._prices.of_models:
            lines.append(f"together: {_shown(total)}")
        if self._unknown:
            lines.append(
                f"without the tokens of {counted(self._unknown, 'request')} that the provider did not count"
            )
        return lines


def _shown(cost: float) -> str:
    return f"less than {_SMALLEST}" if 0 < cost < _SMALLEST else f"{cost:.4f}"
