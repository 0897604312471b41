"""The model of an agent with an output type: it answers with what fits, or the run says why not."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from agents import ModelResponse
from openai.types.responses import ResponseCompletedEvent, ResponseOutputItemDoneEvent

from kantan_agents.bridge.asking import REFUSALS, Refusal, answer_in_form, is_asked_natively, streamed
from kantan_agents.bridge.model_answers import answer_of, completed_event, with_output
from kantan_agents.bridge.observed_model import ObservedModel
from kantan_agents.bridge.stand_in import StandIn
from kantan_agents.bridge.structured_record import is_answer, record
from kantan_agents.structured.agent_output import AgentOutput
from kantan_agents.structured.asking.chain import Chain
from kantan_agents.structured.asking.failure import begin_anew
from kantan_agents.structured.asking.fetch import Fetch
from kantan_agents.structured.asking.request import Request


class StructuredModel(StandIn):
    """Outermost around a model: all that a middleware does to an answer has been done when it is read."""

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Ask the model until there is an answer that fits, as the output options say."""
        if not _asks_for_output(args, kwargs):
            return await self.inner.get_response(*args, **kwargs)
        said: ModelResponse | Refusal | None = None
        if self._may_be_asked_plainly(args, kwargs):
            begin_anew()
            try:
                said = await self.inner.get_response(**kwargs)
            except REFUSALS as error:
                said = error
            else:
                if is_answer(said, kwargs["output_schema"]):
                    return said
        chain = Chain.of(Request.of(args, kwargs))
        try:
            while True:
                answer = chain.settled(await self._answer(chain.next, chain.fetch, said))
                if answer is not None:
                    return answer
                said = None
        finally:
            record(chain)

    def _may_be_asked_plainly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        # The usual case by far, and nothing need be made ready for what could go wrong.
        if args or isinstance(self.inner, ObservedModel):
            return False
        has_tools = bool(kwargs.get("tools") or kwargs.get("handoffs"))
        return is_asked_natively(self.inner, kwargs["output_schema"], has_tools=has_tools)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Ask the model as ``get_response`` does, and stream each attempt."""
        if not _asks_for_output(args, kwargs):
            return self.inner.stream_response(*args, **kwargs)
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
                if last is None:  # the SDK says what that means
                    return
                final = with_output(last.response, items)
                answer = chain.settled(answer_of(final))
                if answer is not None:
                    break
        finally:
            record(chain)
        yield completed_event(answer, final)

    async def _answer(
        self, request: Request, fetch: Fetch, said: ModelResponse | Refusal | None
    ) -> ModelResponse:
        if isinstance(self.inner, ObservedModel):
            return await self.inner.answer(request, fetch)
        return await answer_in_form(self.inner, request, fetch, said=said)

    def _stream(self, request: Request, fetch: Fetch) -> AsyncGenerator[Any, None]:
        if isinstance(self.inner, ObservedModel):
            return self.inner.events(request, fetch)
        return streamed(self.inner, request, fetch)


def _asks_for_output(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    schema = kwargs["output_schema"] if "output_schema" in kwargs else args[_SCHEMA_PLACE]
    return isinstance(schema, AgentOutput)


_SCHEMA_PLACE = 4
