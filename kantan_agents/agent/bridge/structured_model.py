"""Repeats a request until the answer fits the output type."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing
from typing import Any

from agents import ModelResponse, custom_span
from openai.types.responses import ResponseCompletedEvent, ResponseOutputItemDoneEvent

from kantan_agents.agent.bridge.model_answers import answer_of, completed_event, with_output
from kantan_agents.agent.bridge.observed_model import ObservedModel
from kantan_agents.agent.bridge.structured_requests import (
    FormChoice,
    NativeAttempt,
    choose_forms,
    request_output,
    stream_answer,
)
from kantan_agents.core.pipeline import current_run
from kantan_agents.models.ask_model import ask_model, stream_model
from kantan_agents.models.model_wrapper import ModelWrapper
from kantan_agents.models.structured.requests.agent_output import AgentOutput
from kantan_agents.models.structured.requests.chain import Chain
from kantan_agents.models.structured.requests.failure import clear_failure
from kantan_agents.models.structured.requests.fetch import Fetch
from kantan_agents.models.structured.requests.forms import NATIVE
from kantan_agents.models.structured.requests.memory import FORMS, FormTarget
from kantan_agents.models.structured.requests.reading import final_text
from kantan_agents.models.structured.requests.refusals import REFUSALS
from kantan_agents.models.structured.requests.request import Request
from kantan_agents.traces.spans import set_output_mode

SPAN = "structured_output"
_SCHEMA_PLACE = 4


class StructuredModel(ModelWrapper):
    """Returns fitting answers.

    The outermost wrapper, so that it validates the middleware's answer.
    """

    def get_response(self, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, ModelResponse]:
        """Call the model until an answer fits, within the output options."""
        # Not a coroutine: each one adds a frame to the memory of a waiting run.
        if _asks_for_output(args, kwargs):
            return self._fitting_answer(args, kwargs)
        return ask_model(self.inner, args, kwargs)

    async def _fitting_answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ModelResponse:
        attempt: NativeAttempt | None = None
        choice = self._native_choice(args, kwargs)
        if choice is not None:
            clear_failure()
            try:
                answer = await ask_model(self.inner, (), kwargs)
            except REFUSALS as error:
                attempt = NativeAttempt(choice, error)
            else:
                if _accept_native_answer(answer, kwargs["output_schema"], choice.target):
                    return answer
                attempt = NativeAttempt(choice, answer)
        chain = Chain.of(Request.of(args, kwargs))
        try:
            while True:
                settled = chain.settled(await self._answer(chain.next, chain.fetch, attempt))
                if settled is not None:
                    return settled
                attempt = None
        finally:
            _record_attempts(chain)

    def _native_choice(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> FormChoice | None:
        """Return the forms if the SDK's own request comes first, else None."""
        if args or isinstance(self.inner, ObservedModel):
            return None
        has_tools = bool(kwargs.get("tools") or kwargs.get("handoffs"))
        choice = choose_forms(self.inner, kwargs["output_schema"], has_tools=has_tools)
        return choice if choice.is_native else None

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Stream each attempt of ``get_response``."""
        if not _asks_for_output(args, kwargs):
            return stream_model(self.inner, args, kwargs)
        return self._events(Chain.of(Request.of(args, kwargs)))

    async def _events(self, chain: Chain) -> AsyncGenerator[Any, None]:
        try:
            while True:
                last: ResponseCompletedEvent | None = None
                items: list[Any] = []
                async with aclosing(self._stream(chain.next, chain.fetch)) as events:
                    async for event in events:
                        if isinstance(event, ResponseCompletedEvent):
                            last = event
                            continue  # held back: it may not be the answer
                        if isinstance(event, ResponseOutputItemDoneEvent):
                            items.append(event.item)
                        yield event
                if last is None:  # the SDK raises the error for that
                    return
                final = with_output(last.response, items)
                answer = chain.settled(answer_of(final))
                if answer is not None:
                    break
        finally:
            _record_attempts(chain)
        yield completed_event(answer, final)

    async def _answer(self, request: Request, fetch: Fetch, attempt: NativeAttempt | None) -> ModelResponse:
        if isinstance(self.inner, ObservedModel):
            return await self.inner.answer(request, fetch)
        return await request_output(self.inner, request, fetch, attempt=attempt)

    def _stream(self, request: Request, fetch: Fetch) -> AsyncGenerator[Any, None]:
        if isinstance(self.inner, ObservedModel):
            return self.inner.events(request, fetch)
        return stream_answer(self.inner, request, fetch)


def _asks_for_output(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    schema = kwargs["output_schema"] if "output_schema" in kwargs else args[_SCHEMA_PLACE]
    return isinstance(schema, AgentOutput)


def _accept_native_answer(answer: ModelResponse, schema: AgentOutput, target: FormTarget) -> bool:
    """Return whether the native answer can go to the SDK unchanged."""
    text = final_text(answer.output)
    if text is None:  # not a final answer, so not to be validated here
        return True
    if not schema.accepts(text):
        return False
    if schema.delivery.mode == "auto":
        FORMS.worked(target, NATIVE)
    run = current_run.get()
    if run is not None:
        set_output_mode(run, NATIVE.mode, 1)
    return True


def _record_attempts(chain: Chain) -> None:
    """Record the attempts in the trace; failed or repeated ones get a separate span."""
    attempts = chain.fetch.attempts
    if not attempts:  # the model called tools: no answer yet
        return
    run = current_run.get()
    if run is not None:
        set_output_mode(run, attempts[-1].mode, len(attempts))
    tracing: Any = chain.first.options.get("tracing")
    is_off = tracing is not None and tracing.is_disabled()
    if is_off or (len(attempts) == 1 and attempts[-1].fits):
        return
    with_text = tracing is None or tracing.include_data()
    data = {
        "output": chain.fetch.schema.name(),
        "attempts": [attempt.as_dict(with_text=with_text) for attempt in attempts],
    }
    with custom_span(SPAN, data):
        pass
