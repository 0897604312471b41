"""Fits streamed chat completions to the SDK (see ``odd_replies.py``)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Final

from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall

from kantan_agents.models.call_parts import CallParts
from kantan_agents.models.finish_reasons import mark_cut_off, note_choice
from kantan_agents.models.odd_replies import (
    add_reasoning,
    call_data,
    data_of,
    fit_call,
    fit_content,
    fitted_usage,
    is_object,
    objects_in,
)
from kantan_agents.models.text_forms import BEGINNINGS, Reading, TextReader

_TEXTS: Final = frozenset({str, type(None)})


class FittedStream:
    """Chunks that the SDK can read; marks the response if it is cut off."""

    def __init__(
        self,
        stream: Any,
        response: Any,
        new_reader: Callable[[], TextReader],
        note_call: Callable[[], None],
        most: object = None,
    ) -> None:
        self._stream = stream
        self._response = response
        self._new_reader = new_reader
        self._note_call = note_call
        self._most = most

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aiter__(self) -> AsyncIterator[Any]:  # noqa: C901, PLR0912 - see the comment in the loop
        fitter: _ChunkFitter | None = None
        has_text = False
        parts: list[Any] = []  # of calls
        indexes: set[int] = set()
        async for chunk in self._stream:
            # No function call for a usual chunk, for speed.
            text: Any = None
            calls: Any = []
            usage, ended = chunk.usage, None
            try:
                is_usual = usage is None or (
                    type(usage.prompt_tokens)
                    is type(usage.completion_tokens)
                    is type(usage.total_tokens)
                    is int
                )
                if chunk.choices:
                    choice = chunk.choices[0]
                    if choice.finish_reason is not None:
                        ended = choice
                    text, calls = choice.delta.content, choice.delta.tool_calls or []
                    is_usual = is_usual and choice.index == 0 and type(text) in _TEXTS
                for part in calls:
                    given = part.function
                    is_usual = (
                        is_usual
                        and type(part.index) is int
                        and {type(part.id), type(given.name), type(given.arguments)} <= _TEXTS
                        and not (given.name and part.index in indexes)
                    )
                    indexes |= {part.index}
            except (AttributeError, LookupError, TypeError):
                is_usual = False
            if calls and not parts:
                self._note_call()
            if fitter is None and is_usual and (has_text or not text or text[0] not in BEGINNINGS):
                has_text = has_text or bool(text)
                parts += calls
                if ended is not None:
                    self._note_end(ended)
                yield chunk
                continue
            if fitter is None:
                fitter = _ChunkFitter(None if has_text else self._new_reader(), parts)
            fitter.fit(chunk, is_odd=not is_usual)
            parts += calls if is_usual else []
            if ended is not None:  # after the fitter has noted the chunk
                self._note_end(ended)
            yield chunk
            if fitter.is_settled:
                fitter, has_text = None, True
        if fitter is not None:
            for chunk in fitter.rest():
                yield chunk
            if fitter.is_odd:
                self._response.received = fitter.received()

    def _note_end(self, choice: Any) -> None:
        is_known = self._response.incomplete_details is not None  # some servers repeat the reason
        reason = note_choice(choice, self._response.model, self._most, is_known=is_known)
        if reason is not None:
            mark_cut_off(self._response, reason)


class _ChunkFitter:
    """Changes chunks from the first possibly odd one.

    ``reader`` is None and ``parts`` are set after a part has been passed on.
    """

    def __init__(self, reader: TextReader | None, parts: Iterable[Any]) -> None:
        self.is_odd = False
        self._reader = reader
        self._calls = CallParts()
        self._received: list[Any] = []
        self._last: Any = None
        for part in parts:
            self._calls.place(part)

    @property
    def is_settled(self) -> bool:
        return not self.is_odd and self._reader is not None and self._reader.is_text

    def fit(self, chunk: Any, *, is_odd: bool) -> None:
        self.is_odd = self.is_odd or is_odd
        received = _received_in(chunk)
        if isinstance(received, str) and self._received and isinstance(self._received[-1], list):
            self._received[-1].append(received)
        elif not (self._received and _is_continued(self._received[-1], received)):
            self._received.append([received] if isinstance(received, str) else received)
        chunk.usage = fitted_usage(chunk.usage)
        chunk.choices = objects_in(chunk.choices)
        choice = next(iter(chunk.choices), None)
        if choice is None:
            return
        self._last = chunk
        choice.index = choice.index or 0
        if not is_object(choice.delta):  # a whole message: the server does not stream
            message = getattr(choice, "message", None)
            choice.delta = ChoiceDelta.construct(**(message if isinstance(message, dict) else {}))
        delta: Any = choice.delta
        parts = objects_in(delta.tool_calls)
        for part in parts:
            fit_call(part)
            self._calls.place(part)
        delta.tool_calls = parts or None
        fit_content(delta)
        if self._reader is not None:
            if parts:
                self._reader.read_no_calls()
            self._show(delta, self._reader.feed(delta.content or ""))
            self.is_odd = self.is_odd or self._reader.has_reasoning

    def rest(self) -> Iterator[Any]:
        if self._reader is not None and self._last is not None:
            delta = self._last.choices[0].delta = ChoiceDelta.construct()
            self._show(delta, self._reader.rest())
            yield self._last

    def received(self) -> list[Any]:
        """Return the received chunks, joined: a split secret would escape the span's redaction."""
        return ["".join(one) if isinstance(one, list) else one for one in self._received]

    def _show(self, delta: Any, reading: Reading) -> None:
        delta.content = reading.text or None
        add_reasoning(delta, reading.reasoning)
        for call in reading.calls:
            made = ChoiceDeltaToolCall.construct(**call_data(call))
            delta.tool_calls = [*(delta.tool_calls or ()), self._calls.place(made)]
        self.is_odd = self.is_odd or bool(reading.calls)


def _is_continued(before: Any, received: Any) -> bool:
    """Append a chunk that only continues the previous text; return whether it does."""
    try:
        (old,), (new,) = before["choices"], received["choices"]
        if new.get("finish_reason") or received.get("usage"):
            return False
        given, old_delta = {name: value for name, value in new["delta"].items() if value}, old["delta"]
        given.pop("role", None)
        ((name, text),) = given.items()
        if name == "tool_calls":
            (part,), place = text, old_delta["tool_calls"][-1]
            function = part["function"]
            if part.get("id") or function.get("name") or part.get("index") != place.get("index"):
                return False
            name, text, old_delta = "arguments", function["arguments"], place["function"]
        if not type(text) is type(old_delta[name]) is str:
            return False
        old_delta[name] += text
    except (AttributeError, LookupError, TypeError, ValueError):
        return False  # it has something else
    return True


def _received_in(chunk: Any) -> Any:
    choice: Any = next(iter(objects_in(chunk.choices)), None)
    delta: Any = getattr(choice, "delta", None)
    is_only_text = (
        isinstance(delta, ChoiceDelta)
        and isinstance(delta.content, str)
        and not (delta.tool_calls or delta.refusal or delta.model_extra)
        and not (choice.finish_reason or chunk.usage)
    )
    return delta.content if is_only_text else data_of(chunk)
