"""Stores and replays a run's tool calls."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import agents

from kantan_agents.agent.running.identity import InnerIdentities, next_identity
from kantan_agents.core.interception import ToolCall, current_tool_call, end_run_with, redacted_data
from kantan_agents.core.pipeline import Run
from kantan_agents.durable.earlier_calls import INSIDE, ONCE, EarlierCalls
from kantan_agents.durable.execution import Execution
from kantan_agents.durable.originals import Originals
from kantan_agents.durable.step_bodies import error_body, result_body, stored_result, text_of_result
from kantan_agents.errors import KantanAgentsError, ToolOutcomeUnknownError
from kantan_agents.lab.replay.recorded_results import error_of
from kantan_agents.support.log import get_logger
from kantan_agents.traces.capture import RecordedError
from kantan_agents.traces.replayed import mark_replayed

_log = get_logger("kantan_agents.durable")

_COMMANDS = " commands"
_COMMAND = "is_command"
_UNKNOWN = "What this call returned is not stored, and it is not made again."


class ToolJournal:
    """Stores the tool calls of one run.

    Names identify steps, not their order: parallel calls may start in another order.
    """

    def __init__(self, execution: Execution, run: Run) -> None:
        self._execution = execution
        self._run = run
        self._calls: Counter[str] = Counter()
        self._tries: Counter[str] = Counter()
        self._kept: set[str] = set()
        self._earlier = EarlierCalls(execution, run.id)
        self._originals = Originals(run)
        if execution.attempt > 1:
            self._originals.learn(execution.all_known(run.id))

    def known(self, step: str) -> dict[str, Any] | None:
        """Return an earlier process's step, if it has ended."""
        return self._execution.known(self._run.id, step)

    def was_begun(self, step: str) -> bool:
        """Return whether an earlier process started a step."""
        return self._execution.was_begun(self._run.id, step)

    async def start(self, step: str) -> None:
        """Note the start of a step, like ``keep``."""
        await self._execution.start(self._run.id, step)

    async def keep(self, step: str, body: dict[str, Any]) -> dict[str, Any]:
        """Store a redacted result and return it; E157 if the run has moved."""
        redacted: dict[str, Any] = redacted_data(self._run, body)
        await self._execution.finish(self._run.id, step, {**redacted, **self._originals.new()})
        return redacted

    async def note_begin(self, *, is_command: bool) -> None:
        """Note the calls without a model's answer, and the tools allowed only one call."""
        await self.keep(ONCE, {"names": sorted(self._execution.once), _COMMAND: is_command})

    def check_command(self, *, is_command: bool) -> None:
        """Raise E155 unless a command is still one: a model must not get it as input."""
        if (self.known(ONCE) or {}).get(_COMMAND) and not is_command:
            reason = (
                "it began with a command, and the agent has no SlashCommands any more that reads it. Start a "
                "worker that has it, then resume the run"
            )
            raise self._execution.give_up("begin", reason)

    def new_id(self) -> str:
        """Return an id for a call without a model, the same in each process."""
        self._calls[_COMMANDS] += 1
        return inner_id(self._run.id, f"command {self._calls[_COMMANDS]}")

    def number(self, call: ToolCall) -> None:
        """Distinguish calls with equal ids: some providers reuse them in each turn."""
        self._place(call)
        self._calls[f"{call.inside}{call.call_id}"] += 1

    def _place(self, call: ToolCall) -> None:
        call.inside = self._inside()
        call.again = self._calls[f"{call.inside}{call.call_id}"]

    def _inside(self) -> str:
        # SDK agents as tools belong to the run. Several of one name may be active.
        outer = current_tool_call.get()
        if outer is None or outer.run is not self._run:
            return ""
        return f"{outer.path}{f'~{outer.tries}' if outer.tries > 1 else ''}/"

    async def tool(self, call: ToolCall, made: Callable[[], Awaitable[Any]]) -> Any:
        """Return or raise a call's stored outcome, or make the call and store it; raises E153."""
        step = self._step_of_tool(call)
        self._tries[step] += 1
        tries = self._tries[step]
        outer = current_tool_call.get()
        if outer is not None:
            outer.tries = tries  # the calls inside this one have separate paths in each try
        kept = self._kept_result(call, step, tries)
        if tries > 1:  # a middleware tries it again: an earlier try's result must not be used
            step = f"{step}~{tries}"
        if kept is not None:
            mark_replayed(agents.get_current_span())
            if "refused" in kept:
                # The model knows of the denial, and may have found another way, so an allowed call stays
                # denied.
                call.refusal = error_of(RecordedError(**kept["refused"]))
            return stored_result(kept, call.tool)
        if call.name in self._execution.once and self._earlier.may_have_begun(call, step):
            error = ToolOutcomeUnknownError(
                run_id=self._run.id, tool=call.name, call_id=call.call_id, key=call.idempotency_key
            )
            end_run_with(self._run, error)
            raise error
        # Only a call that may happen once is worth a write at its start.
        if call.name in self._execution.once:
            await self.start(step)
        else:
            await self._execution.check()
        # Its inner runs have constant ids, so that their calls are found again.
        inner = InnerIdentities(
            lambda number: inner_id(self._run.id, step if number == 1 else f"{step}#{number}")
        )
        try:
            result = await self._made(inner, made)
        except Exception as error:
            if not isinstance(error, KantanAgentsError) or error.code != "E157":
                await self._keep_ended(call, step, error_body(error), inner)
            raise
        await self._keep_ended(call, step, result_body(result), inner)
        return result

    def _kept_result(self, call: ToolCall, step: str, tries: int) -> dict[str, Any] | None:
        kept = self._earlier.latest(step) if tries == 1 else self.known(f"{step}~{tries}")
        if kept is None and self._earlier.is_ahead(call.inside):
            # The model has continued from this call: a middleware of this version would repeat it.
            kept = self._earlier.latest(step)
            if kept is None:
                _log.warning("call not made again: its result is not stored", run_id=self._run.id, step=step)
                kept = {"result": _UNKNOWN}
        return kept

    async def _keep_ended(
        self, call: ToolCall, step: str, body: dict[str, Any], inner: InnerIdentities
    ) -> None:
        if self._earlier.has_more_inside(call.path, inner):
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
        """Store the result of a middleware that answers without the tool."""
        step = self._step_of_tool(call)
        if self.known(step) is None and step not in self._kept:
            await self._keep_call(call, step, result_body(result))

    def result_of_gone(self, call: ToolCall) -> str | None:
        """Return the stored result of a call whose tool is gone; None for a new call.

        E155 if the call may have happened without a stored result.
        """
        self._place(call)
        step = self._step_of_tool(call)
        call.arguments = self._earlier.arguments_of(call)
        kept = self._earlier.latest(step)
        if kept is None and self._earlier.may_have_been_made(call):
            reason = (
                f"the agent {call.agent!r} has no tool or hand-off {call.name!r} any more, and what the call "
                "has done is not known. Start a worker that has it, then resume the run"
            )
            raise self._execution.give_up(step, reason)
        if kept is None or "refused" in kept:
            return None
        return text_of_result(kept)

    async def refused(self, call: ToolCall, result: Any) -> None:
        """Store a denial and the model's ``result``, unless the call has happened."""
        step = self._step_of_tool(call)
        if call.refusal is None or self.known(step) is not None:
            return
        if self.was_begun(step):
            _log.warning(
                "call in flight not made again: refused", run_id=self._run.id, tool=call.name, step=step
            )
        refused = error_body(call.refusal)["error"]
        await self._keep_call(call, step, {**result_body(result), "refused": refused})

    def check_waiting(self, calls: Iterable[Any]) -> None:
        """Check that no waiting call has happened."""
        for item in calls:
            name, call_id = item.tool_name or "", item.call_id or ""
            again = self._calls[call_id]
            step = f"tool/{name}/{call_id}" + (f"-{again}" if again else "")
            if "refused" not in (self._earlier.latest(step) or {"refused": None}):
                reason = "this version of the program asks for approval of a call that was made before"
                raise self._execution.give_up(step, reason)

    def _step_of_tool(self, call: ToolCall) -> str:
        return f"tool/{call.name}/{call.path}"

    async def _made(self, inner: InnerIdentities, made: Callable[[], Awaitable[Any]]) -> Any:
        token = next_identity.set(inner)
        try:
            return await made()
        except SystemExit as error:
            if self._execution.is_begun_here:
                raise
            # It would end the event loop of the queued runs, and not the process.
            raise RuntimeError(f"the tool has called sys.exit({error.code!r})") from error
        finally:
            next_identity.reset(token)


def inner_id(run_id: str, name: str) -> str:
    """Return an inner run's id, which sorts next to ``run_id`` and is the same everywhere."""
    return run_id[:12] + hashlib.sha256(f"{run_id}/{name}".encode()).hexdigest()[:20]
