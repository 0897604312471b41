"""The model of an agent with an output type: it answers with what fits, or the run says why not."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from agents import ModelResponse
from openai.types.responses import ResponseCompletedEvent, ResponseOutputItemDoneEvent

from kantan_agents.bridge.asking import REFUSALS, Choice, Said, answer_in_form, choice_for, streamed
from kantan_agents.bridge.model_answers import answer_of, completed_event, with_output
from kantan_agents.bridge.observed_model import ObservedModel
from kantan_agents.bridge.stand_in import StandIn
from kantan_agents.bridge.structured_record import is_answer, record
from kantan_agents.structured.requests.agent_output import AgentOutput
from kantan_agents.structured.requests.chain import Chain
from kantan_agents.structured.requests.failure import clear_failure
from kantan_agents.structured.requests.fetch import Fetch
from kantan_agents.structured.requests.request import Request


class StructuredModel(StandIn):
    """Outermost around a model: all that a middleware does to an answer has been done when it is read."""

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Ask the model until there is an answer that fits, as the output options say."""
        if not _asks_for_output(args, kwargs):
            return await self.inner.get_response(*args, **kwargs)
        said: Said | None = None
        choice = self._plain_choice(args, kwargs)
        if choice is not None:
            clear_failure()
            try:
                answer = await self.inner.get_response(**kwargs)
            except REFUSALS as error:
                said = Said(choice, error)
            else:
                if is_answer(answer, kwargs["output_schema"], choice.target):
                    return answer
                said = Said(choice, answer)
        chain = Chain.of(Request.of(args, kwargs))
        try:
            while True:
                settled = chain.settled(await self._answer(chain.next, chain.fetch, said))
                if settled is not None:
                    return settled
                said = None
        finally:
            record(chain)

    def _plain_choice(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Choice | None:
        """Return the forms if the first is what the SDK asks for, so that nothing has to be made ready.

        That is the usual case by far. What could go wrong is seen to when it does.
        """
        if args or isinstance(self.inner, ObservedModel):
            return None
        has_tools = bool(kwargs.get("tools") or kwargs.get("handoffs"))
        choice = choice_for(self.inner, kwargs["output_schema"], has_tools=has_tools)
        return choice if choice.is_native else None

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

    async def _answer(self, request: Request, fetch: Fetch, said: Said | None) -> ModelResponse:
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
