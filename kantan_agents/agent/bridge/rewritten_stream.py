"""Rewrites a stream's text chunk by chunk, for ``TextRewriter`` middleware.

Other events that repeat the original text are dropped.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from kantan_agents.agent.bridge.model_answers import with_output
from kantan_agents.core.interception import TextRewriter

_DELTA = "response.output_text.delta"
_ITEM = "response.output_item.done"
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_ERRORS = ("error", "response.error")
_NO_TEXT = ("response.created", "response.in_progress", "response.queued")


async def rewritten(
    events: Any, factories: Sequence[Callable[[], TextRewriter]]
) -> AsyncGenerator[Any, None]:
    """Yield a stream's events, rewritten; the last factory's rewriter comes first."""
    texts: dict[Any, _Text] = {}
    items: list[Any] = []
    async with aclosing(events):
        async for event in events:
            kind = getattr(event, "type", None)
            if kind == _DELTA:
                place = (event.output_index, event.content_index)
                text = texts.get(place) or texts.setdefault(place, _Text(factories))
                for rest in _ended(texts, place):
                    yield rest
                changed = text.feed(event)
                if changed is not None:
                    yield changed
            elif kind == _ITEM:
                items.append(event.item)
            elif kind in _ENDS:
                for rest in _ended(texts):
                    yield rest
                yield event.model_copy(update={"response": with_output(event.response, items)})
            elif kind in _NO_TEXT or kind in _ERRORS:
                yield event


class _Text:
    def __init__(self, factories: Sequence[Callable[[], TextRewriter]]) -> None:
        self._rewriters = [make() for make in reversed(factories)]
        self._last: Any = None

    def feed(self, event: Any) -> Any:
        self._last = event
        text = event.delta
        for rewriter in self._rewriters:
            text = rewriter.feed(text)
        return _delta(event, text)

    def end(self) -> Any:
        text = ""
        for rewriter in self._rewriters:
            text = (rewriter.feed(text) if text else "") + rewriter.end()
        return _delta(self._last, text)


def _ended(texts: dict[Any, _Text], but: Any = None) -> Iterator[Any]:
    for place in [place for place in texts if place != but]:
        rest = texts.pop(place).end()
        if rest is not None:
            yield rest


def _delta(event: Any, text: str) -> Any:
    if not text:
        return None
    # Token probabilities, and fields that the API does not have, may quote the original text.
    changed = event.model_copy(update={"delta": text, "logprobs": []})
    if changed.model_extra:
        changed.model_extra.clear()
    return changed
