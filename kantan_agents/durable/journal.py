"""Stores and replays the results of a run's calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

from agents import ModelResponse

from kantan_agents.agent.bridge.model_answers import answer_of as answer_of_stream
from kantan_agents.agent.bridge.model_answers import with_output
from kantan_agents.agent.bridge.recorded_answers import model_response, stream_events
from kantan_agents.core.interception import ModelCall
from kantan_agents.core.pipeline import Run
from kantan_agents.durable.earlier_calls import INSIDE, ONCE, UNKNOWN
from kantan_agents.durable.execution import Execution
from kantan_agents.durable.step_bodies import answer_body, answer_of, error_body
from kantan_agents.durable.tool_journal import ToolJournal
from kantan_agents.lab.replay.recorded_results import error_of
from kantan_agents.middleware.fallback import Fallback
from kantan_agents.models.origin import origin_of
from kantan_agents.models.structured.requests.final_tool import (
    final_calls_as_messages,
    final_tool_name,
    is_final_tool,
    without_final_calls,
)
from kantan_agents.models.structured.requests.request import Request
from kantan_agents.traces.capture import RecordedError

_COMPLETED = "response.completed"
_ITEM = "response.output_item.done"


class Journal(ToolJournal):
    """Stores the calls of one run. Failed model requests are sent again instead."""

    def __init__(self, execution: Execution, run: Run) -> None:
        super().__init__(execution, run)
        self._answers: Counter[str] = Counter()
        self._failed: dict[str, dict[str, Any]] = {}

    async def answer(
        self, call: ModelCall, model: Any, request: Request, ask: Callable[[], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Return the stored answer, or call the model and store its answer."""
        step = self._step_of(call)
        kept = self._kept_answer(call, step, model, request)
        if kept is not None:
            answer = model_response(answer_of(kept), origin_of(model).model or "")
            name = _final_tool_of(kept, request)
            return answer if name is None else without_final_calls(answer, name)
        self._check_place(call, step)
        with self._noting_failure(step, model):
            answer = await ask()
        await self._keep_answer(call, step, model, request, answer)
        return answer

    def has_cached(self, call: ModelCall, request: Request) -> bool | None:
        """Return whether the stored answer came from a cache; None without one."""
        kept = self.known(self._step_of(call))
        if kept is None:
            return None
        return bool(kept.get("from_cache")) and kept["form"] == _form_of(request)

    async def stream(
        self, call: ModelCall, model: Any, request: Request, opened: Callable[[], AsyncIterator[Any]]
    ) -> AsyncIterator[Any]:
        """Yield the stored answer's events or the model's, like ``answer``."""
        step = self._step_of(call)
        kept = self._kept_answer(call, step, model, request)
        if kept is not None:
            given: AsyncIterator[Any] = stream_events(answer_of(kept), origin_of(model).model or "")
            name = _final_tool_of(kept, request)
            async for event in given if name is None else final_calls_as_messages(given, name):
                yield event
            return
        self._check_place(call, step)
        items: list[Any] = []
        events: Any = opened()
        async with aclosing(events):
            async for event in self._watched(step, model, events):
                kind = getattr(event, "type", None)
                if kind == _ITEM:
                    items.append(event.item)
                elif kind == _COMPLETED:
                    answer = answer_of_stream(
                        with_output(event.response, items), is_request=call._stored is None
                    )
                    await self._keep_answer(call, step, model, request, answer)
                yield event

    def _step_of(self, call: ModelCall) -> str:
        caller = self._caller(call)
        return f"model/{caller}/{self._answers[caller] + 1}"

    def _caller(self, call: ModelCall) -> str:
        agent = f"{call.agent}/internal" if call.internal else call.agent
        return f"{agent}/{self._inside()}".rstrip("/")

    def _kept_answer(self, call: ModelCall, step: str, model: Any, request: Request) -> dict[str, Any] | None:
        kept = self.known(step)
        if kept is None:
            return None
        failed = kept.get("failed", {}).get(_name_of(model))
        if failed is not None and _has_fallback(call):
            # Another model has answered for this one, at another price: `Fallback` has to call it again.
            raise error_of(RecordedError(**failed))
        # Whatever its form: called again, the model would call the same tools once more.
        if kept["form"] != _form_of(request) and call._structured is not None:
            call._structured.slipped()
        self._answers[self._caller(call)] += 1
        self._earlier.note(self._inside(), kept["output"], kept)
        return kept

    def _check_place(self, call: ModelCall, step: str) -> None:
        """Check that no stored answer belongs here."""
        if not call.internal and self._earlier.is_ahead(self._inside(), of_calls=True):
            reason = (
                "this version of the program would ask anew what a model has answered before. Start a worker "
                "with the version that has begun the run, then resume it"
            )
            raise self._execution.give_up(step, reason)
        self._execution.has_asked = True

    async def _keep_answer(
        self, call: ModelCall, step: str, model: Any, request: Request, answer: ModelResponse
    ) -> None:
        body = answer_body(answer, _form_of(request))
        inside, once = self._inside(), self._execution.once
        self._earlier.note(inside, answer.output)
        final = next((tool.name for tool in request.tools if is_final_tool(tool)), None)
        failed = self._failed.pop(step, {})
        failed.pop(_name_of(model), None)  # it has answered in the end
        further = {
            "from_cache": call._stored is not None,
            "final_tool": final,
            "failed": failed,
            ONCE: sorted(once),
            UNKNOWN: _unknown_names(request, answer),
        }
        body |= {name: value for name, value in further.items() if value}
        await self.keep(step, body if call.internal else {**body, INSIDE: inside})
        self._answers[self._caller(call)] += 1

    @contextmanager
    def _noting_failure(self, step: str, model: Any) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._failed.setdefault(step, {})[_name_of(model)] = error_body(error)["error"]
            raise

    async def _watched(self, step: str, model: Any, events: Any) -> AsyncIterator[Any]:
        with self._noting_failure(step, model):
            async for event in events:
                yield event


def _name_of(model: Any) -> str:
    return origin_of(model).model or type(model).__name__


def _has_fallback(call: ModelCall) -> bool:
    return any(isinstance(getattr(layer, "__self__", None), Fallback) for layer in call.run.model_calls)


def _unknown_names(request: Request, answer: ModelResponse) -> list[str]:
    items: list[Any] = answer.output
    called = {item.name for item in items if getattr(item, "type", None) == "function_call"}
    offered = {getattr(tool, "qualified_name", tool.name) for tool in request.tools}
    return sorted(called - offered - {handoff.tool_name for handoff in request.handoffs})


def _final_tool_of(kept: dict[str, Any], request: Request) -> str | None:
    if kept["form"] != "tool":
        return None
    own = [tool for tool in request.tools if not is_final_tool(tool)]
    return str(kept.get("final_tool") or final_tool_name(own, request.handoffs))


def _form_of(request: Request) -> str:
    schema = request.schema
    if schema is not None and not schema.is_plain_text():
        return "native"
    return "tool" if any(is_final_tool(tool) for tool in request.tools) else "text"
