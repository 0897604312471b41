"""Where a run's model calls can be watched and wrapped, whatever agent makes them.

The SDK takes an agent's model from the agent, or from the provider of the RunConfig. In a run that is
watched it finds a stand-in there, which sends the call through the middleware and tells the observers.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from agents import ModelResponse

from kantan_agents.bridge.asking import answered, streamed
from kantan_agents.bridge.model_calls import ask, checked, stream
from kantan_agents.bridge.stand_in import StandIn
from kantan_agents.bridge.streamed import nobody_reads_deltas
from kantan_agents.bridge.wrapped_stream import WrappedStream
from kantan_agents.interception import ModelCall, around_model_call, asking_agent
from kantan_agents.pipeline import Run, current_run
from kantan_agents.structured.requests.fetch import Fetch
from kantan_agents.structured.requests.request import Request


class ObservedModel(StandIn):
    """Stands where a model stood in a run that is watched."""

    def __init__(self, agent: str) -> None:
        self._agent = agent

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Ask the model, through the middleware of the run."""
        return await self.answer(Request.of(args, kwargs))

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Ask the model, through the middleware of the run, and stream its answer."""
        return self.events(Request.of(args, kwargs))

    async def answer(self, request: Request, fetch: Fetch | None = None) -> ModelResponse:
        """Return the answer to a request; with what was tried so far if it is for a structured output."""
        run = current_run.get()
        if run is None or not run.is_watched:
            return await answered(self.inner, request, fetch)
        call = self._call(run, request, fetch)
        if not run.model_calls:
            return await ask(call)
        return checked(await around_model_call(run.model_calls, call, ask))

    def events(self, request: Request, fetch: Fetch | None = None) -> AsyncGenerator[Any, None]:
        """Return the stream of an answer, as ``answer`` does."""
        run = current_run.get()
        if run is None or not run.is_watched:
            return streamed(self.inner, request, fetch)
        call = self._call(run, request, fetch)
        call.is_streamed = True
        passes_deltas = not nobody_reads_deltas(run)
        if run.model_calls:
            return WrappedStream(run, call, passes_deltas).events()
        return stream(call, passes_deltas=passes_deltas)

    def _call(self, run: Run, request: Request, fetch: Fetch | None) -> ModelCall:
        return ModelCall(
            run,
            asking_agent.get() or self._agent,
            self.inner,
            request.instructions,
            request.input,
            request.settings,
            request.tools,
            request.options,
            structured=fetch,
        )
