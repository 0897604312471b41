"""The model wrapper that sends a run's model calls through its middleware and emits their events.

The SDK takes a model from the agent or from the provider of the RunConfig. In a run with middleware or
observers, it finds this wrapper in both places.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from agents import ModelResponse

from kantan_agents.agent.bridge.model_calls import call_model, checked_response, stream_model
from kantan_agents.agent.bridge.streamed_run import are_deltas_discarded
from kantan_agents.agent.bridge.structured_requests import request_answer, stream_answer
from kantan_agents.agent.bridge.wrapped_stream import WrappedStream
from kantan_agents.core.interception import ModelCall, active_agent, around_model_call
from kantan_agents.core.pipeline import Run, current_run
from kantan_agents.models.model_wrapper import ModelWrapper
from kantan_agents.models.structured.requests.fetch import Fetch
from kantan_agents.models.structured.requests.request import Request


class ObservedModel(ModelWrapper):
    """Wraps a model in a run with middleware or observers.

    Args:
        agent: The agent whose name calls outside of a turn have.
    """

    def __init__(self, agent: Any) -> None:
        self._agent = agent

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Call the model through the middleware of the run."""
        run = current_run.get()
        if run is None or not run.is_only_captured:
            return await self.answer(Request.of(args, kwargs))
        # Most runs come here, so they wait for nothing but the capture.
        request = Request.as_given(args, kwargs)
        call = run.capture.model_call(active_agent.get() or self._agent.name, self.inner, request)
        try:
            answer = await self.inner.get_response(*args, **kwargs)
        except BaseException as error:
            call.failed(error)
            raise
        call.answered(answer)
        return answer

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Call the model through the middleware of the run, and stream the answer."""
        return self.events(Request.of(args, kwargs))

    async def answer(self, request: Request, fetch: Fetch | None = None) -> ModelResponse:
        """Return the answer to a request; ``fetch`` holds the attempts so far of a structured output."""
        run = current_run.get()
        if run is None or not run.is_watched:
            return await request_answer(self.inner, request, fetch)
        call = self._call(run, request, fetch)
        if not run.model_calls:
            return await call_model(call)
        return checked_response(await around_model_call(run.model_calls, call, call_model))

    def events(self, request: Request, fetch: Fetch | None = None) -> AsyncGenerator[Any, None]:
        """Return the stream of the answer to a request, see ``answer``."""
        run = current_run.get()
        if run is None or not run.is_watched:
            return stream_answer(self.inner, request, fetch)
        call = self._call(run, request, fetch)
        call.is_streamed = True
        passes_deltas = not are_deltas_discarded(run)
        if run.model_calls:
            return WrappedStream(run, call, passes_deltas).events()
        return stream_model(call, passes_deltas=passes_deltas)

    def _call(self, run: Run, request: Request, fetch: Fetch | None) -> ModelCall:
        return ModelCall(
            run,
            active_agent.get() or self._agent.name,
            self.inner,
            request.instructions,
            request.input,
            request.settings,
            request.tools,
            request.options,
            structured=fetch,
        )
