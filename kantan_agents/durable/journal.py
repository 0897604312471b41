"""``Journal``: keeps what the calls of one run return, and answers those that an earlier process has made."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import agents
from agents import ModelResponse

from kantan_agents.agent.bridge.model_answers import answer_of as answer_of_stream
from kantan_agents.agent.bridge.model_answers import with_output
from kantan_agents.agent.bridge.recorded_answers import model_response, stream_events
from kantan_agents.agent.running.identity import InnerIdentities, next_identity
from kantan_agents.core.interception import (
    ModelCall,
    ToolCall,
    current_tool_call,
    end_run_with,
    redacted_data,
)
from kantan_agents.core.pipeline import Run
from kantan_agents.durable.earlier_calls import INSIDE, ONCE, EarlierCalls
from kantan_agents.durable.execution import Execution
from kantan_agents.durable.originals import Originals
from kantan_agents.durable.step_bodies import (
    answer_body,
    answer_of,
    error_body,
    result_body,
    stored_result,
    text_of_result,
)
from kantan_agents.errors import KantanAgentsError, ToolOutcomeUnknownError
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
from kantan_agents.support.log import get_logger
from kantan_agents.traces.capture import RecordedError
from kantan_agents.traces.replayed import mark_replayed

_log = get_logger("kantan_agents.durable")

_COMPLETED = "response.completed"
_ITEM = "response.output_item.done"
_COMMANDS = " commands"
_UNKNOWN = "What this call returned is not stored, and it is not made again."


class Journal:
    """Keeps the calls of one run.

    A step is found again by what it is, not by its place: parallel calls may begin in another order.

    Args:
        execution: The execution that the run belongs to.
        run: The run.
    """

    def __init__(self, execution: Execution, run: Run) -> None:
        self._execution = execution
        self._run = run
        self._answers: Counter[str] = Counter()
        self._failed: dict[str, dict[str, Any]] = {}
        self._calls: Counter[str] = Counter()
        self._tries: Counter[str] = Counter()
        self._kept: set[str] = set()
        self._earlier = EarlierCalls(execution, run.id)
        self._originals = Originals(run)
        if execution.attempt > 1:
            self._originals.learn(execution.all_known(run.id))

    def known(self, step: str) -> dict[str, Any] | None:
        """Return what an earlier process has stored of a step; None if it has not ended."""
        return self._execution.known(self._run.id, step)

    def was_begun(self, step: str) -> bool:
        """Return whether an earlier process has begun a step."""
        return self._execution.was_begun(self._run.id, step)

    async def start(self, step: str) -> None:
        """Note that a step begins; otherwise as ``keep``."""
        await self._execution.start(self._run.id, step)

    async def keep(self, step: str, body: dict[str, Any]) -> dict[str, Any]:
        """Store what a step has returned, redacted; return what is stored.

        Raises:
            RunMovedError: E157, the run does not belong to this process any more.
        """
        redacted: dict[str, Any] = redacted_data(self._run, body)
        await self._execution.finish(self._run.id, step, {**redacted, **self._originals.new()})
        return redacted

    # Model calls. Only answers are kept: a request that failed is made again, as a retry would do.

    async def answer(
        self, call: ModelCall, model: Any, request: Request, ask: Callable[[], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Return the kept answer to a request, or ask the model and keep its answer."""
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
        """Return whether the kept answer to a request came from a cache; None if no answer is kept."""
        kept = self.known(self._step_of(call))
        if kept is None:
            return None
        return bool(kept.get("from_cache")) and kept["form"] == _form_of(request)

    async def stream(
        self, call: ModelCall, model: Any, request: Request, opened: Callable[[], AsyncIterator[Any]]
    ) -> AsyncIterator[Any]:
        """Yield the events of the kept answer, or of the model's; otherwise as ``answer``."""
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
            # Another model has answered for this one, at another price: `Fallback` has to ask that one again.
            raise error_of(RecordedError(**failed))
        # In whichever form it was asked for: asked again, the model would call the same tools once more.
        if kept["form"] != _form_of(request) and call._structured is not None:
            call._structured.slipped()
        self._execution.replayed = step
        self._answers[self._caller(call)] += 1
        self._earlier.note(self._inside(), kept["output"], kept)
        return kept

    def _check_place(self, call: ModelCall, step: str) -> None:
        """Check that no stored answer belongs here, before the model is asked for a new one."""
        if not call.internal and self._earlier.is_ahead(self._inside(), of_calls=True):
            reason = (
                "this version of the program would ask anew what a model has answered before, to another "
                "agent or in another order. Start a worker with the version that has begun the run, then resume it"
            )
            raise self._execution.give_up(step, reason)
        self._execution.replayed = None

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

    # Tool calls. The rules have allowed them, now and not only when they were made.

    def new_id(self) -> str:
        """Return an id for a call that no model has made, the same in each process."""
        self._calls[_COMMANDS] += 1
        return inner_id(self._run.id, f"command {self._calls[_COMMANDS]}")

    def number(self, call: ToolCall) -> None:
        """Tell calls with the same id apart: some providers begin anew in each turn."""
        self._place(call)
        self._calls[f"{call.inside}{call.call_id}"] += 1

    def _place(self, call: ToolCall) -> None:
        call.inside = self._inside()
        call.again = self._calls[f"{call.inside}{call.call_id}"]

    def _inside(self) -> str:
        # Agents of the SDK as tools belong to the run. Those of one name may be asked at the same time.
        outer = current_tool_call.get()
        if outer is None or outer.run is not self._run:
            return ""
        return f"{outer.path}{f'~{outer.tries}' if outer.tries > 1 else ''}/"

    async def tool(self, call: ToolCall, made: Callable[[], Awaitable[Any]]) -> Any:
        """Return what a call has returned or raised before, or make it and keep that.

        Raises:
            ToolOutcomeUnknownError: E153, an earlier process has begun it, and it may be made only once.
        """
        step = self._step_of_tool(call)
        self._tries[step] += 1
        tries = self._tries[step]
        outer = current_tool_call.get()
        if outer is not None:
            outer.tries = tries  # the calls inside this one have places of their own in each try
        kept = self._kept_result(call, step, tries)
        if tries > 1:  # a middleware tries it again: what an earlier try has returned is not its
            step = f"{step}~{tries}"
        if kept is not None:
            mark_replayed(agents.get_current_span())
            if "refused" in kept:
                # The model knows so, and may have found another way: not made, though allowed now.
                call.refusal = error_of(RecordedError(**kept["refused"]))
            return stored_result(kept, call.tool)
        if call.name in self._execution.once and self._earlier.may_have_begun(call, step):
            error = ToolOutcomeUnknownError(
                run_id=self._run.id, tool=call.name, call_id=call.call_id, key=call.idempotency_key
            )
            end_run_with(self._run, error)
            raise error
        # Only for a call that may be made once is it worth a write that it has begun.
        if call.name in self._execution.once:
            await self.start(step)
        else:
            await self._execution.check()
        try:
            result = await self._made(step, made)
        except Exception as error:
            if not isinstance(error, KantanAgentsError) or error.code != "E157":
                await self._keep_ended(call, step, error_body(error))
            raise
        await self._keep_ended(call, step, result_body(result))
        return result

    def _kept_result(self, call: ToolCall, step: str, tries: int) -> dict[str, Any] | None:
        kept = self._earlier.latest(step) if tries == 1 else self.known(f"{step}~{tries}")
        if kept is None and self._earlier.is_ahead(call.inside):
            # The model has gone on from this call: a middleware of this version would make it anew.
            kept = self._earlier.latest(step)
            if kept is None:
                _log.warning("call not made again: its result is not stored", run_id=self._run.id, step=step)
                kept = {"result": _UNKNOWN}
        return kept

    async def _keep_ended(self, call: ToolCall, step: str, body: dict[str, Any]) -> None:
        if self._earlier.has_more_inside(call.path, lambda number: self._inner_id(step, number)):
            reason = (
                "this version of the program has ended the call without what an earlier one has done inside "
                "it. Start a worker with the version that has begun the run, then resume it"
            )
            raise self._execution.give_up(step, reason)
        await self._keep_call(call, step, body)

    async def _keep_call(self, call: ToolCall, step: str, body: dict[str, Any]) -> None:
        self._kept.add(self._step_of_tool(call))
        await self.keep(step, {**body, INSIDE: call.inside})

    async def ended(self, call: ToolCall, result: Any) -> None:
        """Keep what the model gets for a call that a middleware has answered, without the tool."""
        step = self._step_of_tool(call)
        if self.known(step) is None and step not in self._kept:
            await self._keep_call(call, step, result_body(result))

    def result_of_gone(self, call: ToolCall) -> str | None:
        """Return the stored result of a call whose tool the agent has no more; None for a new call.

        Raises:
            StoredStepError: E155, an earlier attempt may have made it, and its result is not stored.
        """
        self._place(call)
        step = self._step_of_tool(call)
        kept, stored = self._earlier.latest(step), self._earlier.stored_call(call)
        if stored is not None:
            call.arguments = stored.arguments
        if kept is None and stored is not None:
            reason = (
                f"the agent {call.agent!r} has no tool or hand-off {call.name!r} any more, and what the call "
                "has done is not known. Start a worker that has it, then resume the run"
            )
            raise self._execution.give_up(step, reason)
        if kept is None or "refused" in kept:
            return None
        return text_of_result(kept)

    async def refused(self, call: ToolCall, result: Any) -> None:
        """Keep that the rules have refused a call, unless an earlier process has made it.

        Args:
            call: The call, with its refusal.
            result: What the model gets instead of a result.
        """
        step = self._step_of_tool(call)
        if call.refusal is None or self.known(step) is not None:
            return
        if self.was_begun(step):
            _log.warning(
                "call in flight not made again: refused", run_id=self._run.id, tool=call.name, step=step
            )
        refused = error_body(call.refusal)["error"]
        await self._keep_call(call, step, {**result_body(result), "refused": refused})

    def _inner_id(self, step: str, number: int) -> str:
        return inner_id(self._run.id, step if number == 1 else f"{step}#{number}")

    def check_waiting(self, calls: Iterable[Any]) -> None:
        """Check that no call waits for approval that an earlier attempt has made."""
        for item in calls:
            name, call_id = item.tool_name or "", item.call_id or ""
            again = self._calls[call_id]
            step = f"tool/{name}/{call_id}" + (f"-{again}" if again else "")
            if "refused" not in (self._earlier.latest(step) or {"refused": None}):
                reason = "this version of the program asks for approval of a call that was made before"
                raise self._execution.give_up(step, reason)

    def _step_of_tool(self, call: ToolCall) -> str:
        return f"tool/{call.name}/{call.path}"

    async def _made(self, step: str, made: Callable[[], Awaitable[Any]]) -> Any:
        # The runs that it starts have the same ids in each process, so that their calls are found again.
        identities = InnerIdentities(lambda number: self._inner_id(step, number))
        token = next_identity.set(identities)
        try:
            return await made()
        except SystemExit as error:
            if self._execution.is_begun_here:
                raise
            # It would end the event loop that makes the queued runs, and not the process.
            raise RuntimeError(f"the tool has called sys.exit({error.code!r})") from error
        finally:
            next_identity.reset(token)


def inner_id(run_id: str, name: str) -> str:
    """Return the id of a run inside another one: it sorts beside it, and is the same in each process."""
    return run_id[:12] + hashlib.sha256(f"{run_id}/{name}".encode()).hexdigest()[:20]


def _name_of(model: Any) -> str:
    return origin_of(model).model or type(model).__name__


def _has_fallback(call: ModelCall) -> bool:
    return any(isinstance(getattr(layer, "__self__", None), Fallback) for layer in call.run.model_calls)


def _final_tool_of(kept: dict[str, Any], request: Request) -> str | None:
    """Return the name of the tool whose call gives the answer, in an answer that was asked for so."""
    if kept["form"] != "tool":
        return None
    own = [tool for tool in request.tools if not is_final_tool(tool)]
    return str(kept.get("final_tool") or final_tool_name(own, request.handoffs))


def _form_of(request: Request) -> str:
    """Return how a request asks for structured output, which decides what an answer looks like."""
    schema = request.schema
    if schema is not None and not schema.is_plain_text():
        return "native"
    return "tool" if any(is_final_tool(tool) for tool in request.tools) else "text"
