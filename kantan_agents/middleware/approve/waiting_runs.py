"""Store, decide and resume runs that wait for approval."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from agents import RunState

from kantan_agents.core.interception import Layers
from kantan_agents.core.pipeline import OutputT_co, RunContext
from kantan_agents.errors import ApprovalStateError
from kantan_agents.middleware.approve.calls import Approved, Decision, Edit, Edits, PendingCall, Rejected
from kantan_agents.middleware.approve.keys import Keys, given_keys, recorded_keys
from kantan_agents.middleware.approve.stored_runs import state_of, text_of

_EDITS = "_kantan_edits"


class Resumable(Protocol[OutputT_co]):
    """The used part of ``Agent``."""

    name: str

    @property
    def sdk_agent(self) -> Any:
        """The SDK's agent."""
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
    return [pending_call(item) for item in getattr(context.get("result"), "interruptions", None) or ()]


def to_json(context: Mapping[str, Any], *, key: Keys | None = None) -> str:
    """Return a run that waits for approval as signed JSON, to be stored and resumed later.

    It holds the conversation and the context unencrypted. Its signature (HMAC-SHA256 over the JSON and the
    agent's name) detects any change, so store it unchanged; white space around it is ignored.

    Args:
        context: The context returned by ``run_async``.
        key: The key that signs, at least 16 bytes; of several, the first. None means the environment variable
            ``KANTAN_AGENTS_KEY``, or else a file next to the database of ``record_traces``. That file is
            created with 32 random bytes if it is missing, and read in the calling thread. It is rejected if
            others may read it, if it belongs to another user, or if it is a link.

    Raises:
        ApprovalStateError: E85, no call waits for approval, the context holds a value that JSON cannot
            represent, or there is no key.
        InvalidOptionError: E75, a key is too short or has another type.
    """
    if not pending(context):
        raise ApprovalStateError(reason="this run waits for no approval, so there is nothing to store")
    return text_of(context, given_keys(key) or recorded_keys(create=True))


async def decide(
    agent: Resumable[Any],
    text: str,
    decisions: Mapping[str, Decision],
    *,
    key: Keys | None = None,
    trust_unsigned: bool = False,
) -> RunState[Any, Any]:
    """Apply decisions to a stored run, and return the input for ``agent.run_async`` or ``agent.stream``.

    Args:
        agent: An agent configured like the one that was run.
        text: The JSON returned by ``to_json``. It determines the calls that are made, the rules and the
            context, so its signature is verified first. ``user_rules`` are restored as ``UserRules`` if your
            code created them.
        decisions: ``Approved(...)`` or ``Rejected(...)`` by call id. Calls without a decision keep waiting.
        key: The keys that may have signed the text; None as for ``to_json``, but no file is created.
        trust_unsigned: Whether to accept runs that earlier versions stored without a signature. Set it only
            if no one else could change them: such JSON determines the calls that are made. A changed run with
            a signature is always rejected.

    Raises:
        ApprovalStateError: E85, the text is not signed with one of the keys, was changed, or is not a stored
            run of this agent. Or there is no key, a decision has an unknown or ambiguous call id or another
            type, or it edits arguments and the agent has no ``Approve`` middleware.
        InvalidOptionError: E75, a key is too short or has another type.
    """
    state = await state_of(agent, text, given_keys(key), trust_unsigned=trust_unsigned)
    return decided(agent, state, decisions)


def decided(
    agent: Resumable[Any], state: RunState[Any, Any], decisions: Mapping[str, Decision]
) -> RunState[Any, Any]:
    """Apply decisions, as ``decide`` does."""
    waiting = {item.call_id: item for item in state.get_interruptions()}
    ids = [item.call_id for item in state.get_interruptions()]
    edits: dict[str, Edit] = {}
    for call_id, decision in decisions.items():
        item = waiting.get(call_id)
        if item is None:
            known = ", ".join(map(str, waiting)) or "none"
            raise ApprovalStateError(reason=f"no call {call_id!r} waits; those that do are: {known}")
        if ids.count(call_id) > 1:
            raise ApprovalStateError(reason=f"{ids.count(call_id)} waiting calls have the id {call_id!r}")
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
    *,
    key: Keys | None = None,
    trust_unsigned: bool = False,
    **runner_options: Any,
) -> RunContext[OutputT_co]:
    """Resume a stored run, in this or another process, and return its context.

    Args:
        agent: As for ``decide``.
        text: As for ``decide``.
        decisions: As for ``decide``.
        context: The context to use; None uses the stored one.
        key: As for ``decide``.
        trust_unsigned: As for ``decide``.
        **runner_options: As for ``agent.run_async``.

    Raises:
        ApprovalStateError, InvalidOptionError: E85, E75, as for ``decide``.
        Exception: Any error that ``agent.run_async`` raises.
    """
    state = await decide(agent, text, decisions, key=key, trust_unsigned=trust_unsigned)
    return await agent.run_async(state, context, **runner_options)


def edits_of(input: Any) -> Edits:
    """Return the edits attached to a run's input."""
    edits: Edits = getattr(input, _EDITS, {}) if isinstance(input, RunState) else {}
    return edits


def _passes_edits_on(agent: Resumable[Any]) -> bool:
    layers = getattr(agent, "layers", Layers()).tool_calls
    return any(getattr(getattr(layer, "__self__", None), "passes_edits_on", False) for layer in layers)


def _edited(item: Any, arguments: str) -> Edit:
    call = item.raw_item
    if getattr(call, "type", None) == "function_call":
        return Edit(call.name, call.arguments, arguments)
    raise ApprovalStateError(
        reason=f"the arguments of {item.name!r} cannot be edited: it is not a function tool"
    )


def pending_call(item: Any) -> PendingCall:
    """Convert the SDK's approval item."""
    arguments = item.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
    return PendingCall(item.call_id or "", item.name or "", text, item.agent.name)
