"""A model's stream whose text is changed on its way, although it comes in pieces.

Everything else that would tell the text in another form is left out: the pieces of tool arguments, the
texts and items that are complete. None of it is needed; the answer comes whole with the last event.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from kantan_agents.bridge.model_answers import with_output
from kantan_agents.interception import TextRewriter

_DELTA = "response.output_text.delta"
_ITEM = "response.output_item.done"
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_ERRORS = ("error", "response.error")
_SAY_NOTHING = ("response.created", "response.in_progress", "response.queued")


async def rewritten(
    events: Any, factories: Sequence[Callable[[], TextRewriter]]
) -> AsyncGenerator[Any, None]:
    """Yield the events of a model's stream, its text sent through rewriters.

    Args:
        events: The SDK's stream events.
        factories: Make the rewriters of one text; the last one comes first.
    """
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
            elif kind in _SAY_NOTHING or kind in _ERRORS:
                yield event


class _Text:
    """One text of an answer on its way through the rewriters."""

    def __init__(self, factories: Sequence[Callable[[], TextRewriter]]) -> None:
        self._rewriters = [make() for make in reversed(factories)]
        self._last: Any = None

    def feed(self, event: Any) -> Any:
        """Return the event with what may be passed on by now, None if that is nothing."""
        self._last = event
        text = event.delta
        for rewriter in self._rewriters:
            text = rewriter.feed(text)
        return _delta(event, text)

    def end(self) -> Any:
        """Return an event with the rest, None if there is none."""
        text = ""
        for rewriter in self._rewriters:
            text = (rewriter.feed(text) if text else "") + rewriter.end()
        return _delta(self._last, text)


def _ended(texts: dict[Any, _Text], but: Any = None) -> Iterator[Any]:
    """Yield the rest of all texts but one: a text is over when another begins."""
    for place in [place for place in texts if place != but]:
        rest = texts.pop(place).end()
        if rest is not None:
            yield rest


def _delta(event: Any, text: str) -> Any:
    # The probabilities of the tokens quote the text as the model wrote it.
    return event.model_copy(update={"delta": text, "logprobs": []}) if text else None
