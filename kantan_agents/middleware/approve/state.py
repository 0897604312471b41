"""Runs that wait for approval: list the pending calls, store the run as JSON, decide and resume."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from agents import RunState
from agents.exceptions import AgentsException

from kantan_agents.errors import ApprovalStateError
from kantan_agents.interception import Layers
from kantan_agents.middleware.approve.calls import Approved, Decision, Edits, PendingCall, Rejected
from kantan_agents.pipeline import OutputT_co, RunContext

_EDITS = "_kantan_edits"


class Resumable(Protocol[OutputT_co]):
    """The part of ``Agent`` that resuming a run needs."""

    name: str

    @property
    def sdk_agent(self) -> Any:
        """The agent as the SDK sees it."""
        ...

    async def run_async(
        self, input: Any, context: dict[str, Any] | None = None, **runner_options: Any
    ) -> RunContext[OutputT_co]:
        """Run the agent."""
        ...


def pending(context: Mapping[str, Any]) -> list[PendingCall]:
    """Return the tool calls that wait for approval; an empty list if the run is complete.

    Args:
        context: The context returned by ``run_async``.
    """
    return [_pending(item) for item in getattr(context.get("result"), "interruptions", None) or ()]


def to_json(context: Mapping[str, Any]) -> str:
    """Return a run that waits for approval as JSON text, to be stored and resumed later.

    The text holds the conversation and the context unencrypted.

    Args:
        context: The context returned by ``run_async``.

    Raises:
        ApprovalStateError: E85, no call waits for approval, or the context holds a value that JSON cannot
            represent.
    """
    if not pending(context):
        raise ApprovalStateError(reason="this run waits for no approval, so there is nothing to store")
    result = context["result"]
    try:
        # The state of an agent used as a tool holds the caller's context, whose result is not JSON.
        with _without_result(context):
            text: str = result.to_state().to_string()
    except (AgentsException, TypeError, ValueError) as error:
        raise ApprovalStateError(reason=f"the run cannot be stored as JSON: {error}") from error
    return text


@contextmanager
def _without_result(context: Mapping[str, Any]) -> Iterator[None]:
    if not isinstance(context, dict):
        yield
        return
    result = context.pop("result")
    try:
        yield
    finally:
        context["result"] = result


async def decide(agent: Resumable[Any], text: str, decisions: Mapping[str, Decision]) -> RunState[Any, Any]:
    """Apply decisions to a stored run; the result is the input of ``agent.run_async`` or ``agent.stream``.

    Args:
        agent: An agent configured like the one that was run.
        text: The text returned by ``to_json``.
        decisions: ``Approved(...)`` or ``Rejected(...)`` by call id. Calls without a decision keep waiting.

    Raises:
        ApprovalStateError: E85, the text is not a stored run of this agent, a decision has an unknown call id
            or another type, or it edits arguments and the agent has no ``Approve`` middleware.
    """
    state = await _state(agent, text)
    waiting = {item.call_id: item for item in state.get_interruptions()}
    edits: dict[str, str] = {}
    for call_id, decision in decisions.items():
        item = waiting.get(call_id)
        if item is None:
            known = ", ".join(map(str, waiting)) or "none"
            raise ApprovalStateError(reason=f"no call {call_id!r} waits; those that do are: {known}")
        if isinstance(decision, Rejected):
            state.reject(item, rejection_message=decision.reason)
        elif isinstance(decision, Approved):
            state.approve(item)
            if decision.arguments is not None:
                edits[call_id] = _edited(item, decision.arguments)
        else:
            raise ApprovalStateError(reason=f"decide Approved or Rejected, not {decision!r}")
    if edits and not _passes_edits_on(agent):
        raise ApprovalStateError(reason="the agent has no Approve among its middleware to edit arguments")
    setattr(state, _EDITS, edits)
    return state


async def resume(
    agent: Resumable[OutputT_co],
    text: str,
    decisions: Mapping[str, Decision],
    context: dict[str, Any] | None = None,
    **runner_options: Any,
) -> RunContext[OutputT_co]:
    """Resume a stored run, in this or another process, and return its context.

    Args:
        agent: As for ``decide``.
        text: As for ``decide``.
        decisions: As for ``decide``.
        context: The context to use; None uses the stored one.
        **runner_options: As for ``agent.run_async``.

    Raises:
        ApprovalStateError: E85, as for ``decide``.
        Exception: Any error that ``agent.run_async`` raises.
    """
    return await agent.run_async(await decide(agent, text, decisions), context, **runner_options)


def edits_of(input: Any) -> Edits:
    """Return the edited arguments attached to a run's input, by call id."""
    edits: Edits = getattr(input, _EDITS, {}) if isinstance(input, RunState) else {}
    return edits


async def _state(agent: Resumable[Any], text: str) -> RunState[Any, Any]:
    try:
        data = json.loads(text)
        return await RunState.from_json(agent.sdk_agent, data)
    except Exception as error:  # the SDK raises many types for invalid text
        raise ApprovalStateError(
            reason=f"this is not a stored run of agent {agent.name!r}: {error}"
        ) from error


def _passes_edits_on(agent: Resumable[Any]) -> bool:
    layers = getattr(agent, "layers", Layers()).tool_calls
    return any(getattr(getattr(layer, "__self__", None), "passes_edits_on", False) for layer in layers)


def _edited(item: Any, arguments: str) -> str:
    if getattr(item.raw_item, "type", None) == "function_call":
        return arguments
    raise ApprovalStateError(
        reason=f"the arguments of {item.name!r} cannot be edited: it is not a function tool"
    )


def _pending(item: Any) -> PendingCall:
    arguments = item.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
    return PendingCall(item.call_id or "", item.name or "", text, item.agent.name)
