"""The events of one model call, and its capture."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from agents import Model, ModelResponse
from openai.types.responses import Response

from kantan_agents.agent.bridge.model_answers import answer_of, usage_of_call, with_output
from kantan_agents.core.events import (
    ModelCallFinished,
    ModelCallStarted,
    RawResponseEvent,
    ReasoningDelta,
    RetryScheduled,
    TextDelta,
    ToolArgumentsDelta,
)
from kantan_agents.core.events.emitter import Stopwatch, outcome_of
from kantan_agents.core.interception import ModelCall, error_message
from kantan_agents.core.pipeline import Run
from kantan_agents.models.client_retries import client_retry_listener
from kantan_agents.models.finish_reasons import finish_reason
from kantan_agents.models.origin import name_of
from kantan_agents.models.structured.requests.request import Request

TEXT_DELTA: Final = "response.output_text.delta"
_COUNT = object()
_BEGUN = "response.output_item.added"
_DONE = "response.output_item.done"
_REASONING = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")
_ARGUMENTS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")


class CallEvents:
    """Emits and captures one model call's events."""

    def __init__(self, call: ModelCall, model: Model | None, request: Request | None = None) -> None:
        count = call.run.state[_COUNT] = call.run.state.get(_COUNT, 0) + 1
        self._names: dict[str, Any] = {
            "agent": call.agent,
            "internal": call.internal,
            "call_id": f"model_{count}",
        }
        self._model = None if model is None else name_of(model)
        self._watch = Stopwatch()
        self._run = call.run
        self._events = call.run.events
        self._calls: dict[int, Any] = {}
        self._rewrites = bool(call.rewriters)
        self._items: list[Any] = []
        self._reports_usage = True
        self._call = call
        if request is not None and call._stored is None:
            call._was_sent = True
        capture = call.run._capture
        self._captured = None
        if capture is not None and request is not None:
            self._captured = capture.model_call(
                call.agent,
                model,
                request,
                fetch=call._structured,
                is_streamed=call.is_streamed,
                is_internal=call.internal,
                from_cache=call._stored is not None,
            )

    async def started(self) -> None:
        """Emit ``ModelCallStarted``, and from here on the client's retries."""
        if self._events is None:
            return
        client_retry_listener.set(partial(self._events.emit, RetryScheduled, **self._names))
        if self._events.wants(ModelCallStarted):
            await self._events.emit(ModelCallStarted, **self._names, model=self._model)

    def delta(self, text: str) -> Awaitable[None] | None:
        """Emit ``TextDelta``; return an awaitable if an observer is slow."""
        return None if self._events is None else self._events.begin_emit(TextDelta, text=text, **self._names)

    def with_raw_events(self, events: Any) -> Any:
        """Return the stream; it also emits each raw event."""
        has_readers = self._events is not None and bool(self._events.raw_handlers)
        return self._emitting_raw_events(events) if has_readers else events

    async def _emitting_raw_events(self, events: Any) -> AsyncGenerator[Any, None]:
        assert self._events is not None
        async with aclosing(events):
            async for event in events:
                # Other events repeat the text, or hold arguments, reasoning or errors that middleware cannot
                # rewrite.
                if not self._rewrites or getattr(event, "type", None) == TEXT_DELTA:
                    slow_readers = self._events.begin_emit(RawResponseEvent, data=event, **self._names)
                    if slow_readers is not None:
                        await slow_readers
                yield event

    def piece(self, kind: Any, event: Any) -> Awaitable[None] | None:
        """Emit the event for a piece, like ``delta``."""
        if kind == _DONE:
            self._items.append(event.item)
        if self._events is None:
            return None
        if kind == TEXT_DELTA:
            return self.delta(event.delta)
        if kind in _REASONING and event.delta:
            return self._events.begin_emit(ReasoningDelta, text=event.delta, **self._names)
        if kind == _BEGUN:
            # The events of the arguments name neither the call nor the tool.
            self._calls[event.output_index] = event.item
        elif kind in _ARGUMENTS and event.delta:
            return self._arguments(self._calls.get(event.output_index), event.delta)
        return None

    def _arguments(self, item: Any, delta: str) -> Awaitable[None] | None:
        call_id, tool = getattr(item, "call_id", None), getattr(item, "name", None)
        if self._events is None or not isinstance(call_id, str) or not isinstance(tool, str):
            return None
        names = {**self._names, "call_id": call_id}
        return self._events.begin_emit(ToolArgumentsDelta, tool=tool, arguments=delta, **names)

    def answer_of(self, final: Response) -> ModelResponse:
        """Return the final response, with items that only earlier events had."""
        self._reports_usage = final.usage is not None
        return answer_of(with_output(final, self._items), is_request=self._call._stored is None)

    async def ended(
        self, error: BaseException | None, answer: ModelResponse | None, *, has_begun: bool = False
    ) -> None:
        """Emit ``ModelCallFinished``."""
        call, race = self._call, self._call._race
        is_superseded = error is not None and race is not None and race.is_lost
        counted = race.late_answer if is_superseded else answer
        usage = None if counted is None else counted.usage
        if self._captured is not None:
            if error is not None:
                self._captured.failed(error, has_begun=has_begun, is_superseded=is_superseded)
            elif answer is not None:
                self._captured.answered(answer, reports_usage=self._reports_usage)
        if self._events is not None:
            client_retry_listener.set(None)
            await self._events.emit_end(
                ModelCallFinished,
                **self._names,
                model=self._model,
                seconds=self._watch.seconds,
                outcome=outcome_of(error),
                usage=None if usage is None else usage_of_call(usage, is_request=call._stored is None),
                error_type=None if error is None else type(error).__name__,
                message=None if error is None else error_message(self._run, error),
                from_cache=call._stored is not None,
                superseded=is_superseded,
                finish_reason=finish_reason(answer),
            )


def calls_begun(run: Run) -> int:
    """Return how many requests the run has sent."""
    count: int = run.state.get(_COUNT, 0)
    return count


def last_call_id(run: Run) -> str:
    """Return the ``call_id`` of the latest model call."""
    return f"model_{calls_begun(run)}"
