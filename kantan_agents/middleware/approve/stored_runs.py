"""Paused runs as signed JSON.

The signature covers the exact characters, so nothing is parsed before it has been verified.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import anyio.to_thread
import attrs
from agents import RunState
from agents.exceptions import AgentsException

from kantan_agents.agent.bridge import context_of, without_result
from kantan_agents.errors import ApprovalStateError
from kantan_agents.middleware.approve.keys import recorded_keys
from kantan_agents.middleware.slash_commands.user_rules import USER_RULES, UserRules
from kantan_agents.tool_rules import ToolRulesMode

_OURS = "kantan_agents"
_VERSION: Final = "kantan_agents_paused_run"
_HEADER: Final = re.compile(
    rf'\{{"{_VERSION}":1,"agent":("(?:[^"\\\x00-\x1f]|\\.)*"),"signature":"([0-9a-f]{{64}})","state":'
)
# Separates this use of the key from all others, and from later versions of the format.
_DOMAIN: Final = b"kantan_agents paused run 1\n"
_WHITE_SPACE: Final = " \t\r\n"


class StoredRunAgent(Protocol):
    """The used part of ``Agent``."""

    name: str

    @property
    def sdk_agent(self) -> Any:
        """The SDK's agent."""
        ...


def text_of(context: Mapping[str, Any], keys: Sequence[bytes], leave_out: Sequence[str] = ()) -> str:
    """Return the paused run of a context as JSON, signed with the first key, without ``leave_out``."""
    result = context["result"]
    try:
        # The state of an agent used as a tool holds the caller's context, whose result is not JSON.
        with without_result(context):
            state = result.to_state()
            if leave_out:
                state = _with_less(state, leave_out)
            text = json.dumps(state_data(state), default=as_json, separators=(",", ":"))
    except (AgentsException, TypeError, ValueError) as error:
        raise ApprovalStateError(reason=f"the run cannot be stored as JSON: {error}") from error
    # The SDK has no public access to the agent that started the run.
    return signed(state._starting_agent.name, text, keys[0])


def _with_less(state: RunState[Any, Any], leave_out: Sequence[str]) -> RunState[Any, Any]:
    less, given = copy.copy(state), context_of(state)
    less._context = copy.copy(state._context)  # the SDK has no public way to change it
    less._context.context = {key: value for key, value in given.items() if key not in leave_out}  # type: ignore[union-attr]
    return less


async def state_of(
    agent: StoredRunAgent, text: Any, keys: Sequence[bytes], *, trust_unsigned: bool
) -> RunState[Any, Any]:
    """Return a stored run after verifying its signature, by default with the key of the trace database."""
    return await state_from(agent, await _verified(agent, text, keys, trust_unsigned=trust_unsigned))


async def state_from(agent: StoredRunAgent, data: dict[str, Any]) -> RunState[Any, Any]:
    """Return the run in data of ``state_data``, which only trusted code may write."""
    ours = data.pop(_OURS, {})
    try:
        state = await RunState.from_json(agent.sdk_agent, data)
    except Exception as error:  # the SDK raises many types for invalid text
        raise ApprovalStateError(
            reason=f"this is not a stored run of agent {agent.name!r}: {error}"
        ) from error
    if USER_RULES in ours:
        context_of(state)[USER_RULES] = UserRules(ours[USER_RULES])
    return state


async def _verified(
    agent: StoredRunAgent, text: Any, keys: Sequence[bytes], *, trust_unsigned: bool
) -> dict[str, Any]:
    if isinstance(text, (bytes, bytearray)):
        text = text.decode("utf-8", "replace")
    if not isinstance(text, str):
        raise ApprovalStateError(reason=f"a stored run is a str, not {type(text).__name__}")
    found = read_signed(text)
    if found is not None:
        name, data = found.verified(keys or await anyio.to_thread.run_sync(_recorded_keys))
        if name != agent.name:
            reason = f"this is not a stored run of agent {agent.name!r}, but of {name!r}"
            raise ApprovalStateError(reason=reason)
        return data
    data = _read_unsigned(text)
    if _OURS in data:
        raise ApprovalStateError(reason="the signature of the stored run was removed; nothing was run")
    if trust_unsigned is not True:
        raise ApprovalStateError(
            reason="the stored run has no signature, so anybody may have written it. If an earlier version "
            "stored it and nobody could change it since, pass trust_unsigned=True"
        )
    return data


def _recorded_keys() -> tuple[bytes, ...]:
    return recorded_keys(create=False)


def state_data(state: RunState[Any, Any]) -> dict[str, Any]:
    """Return a state as JSON data, with ``user_rules`` apart from the context.

    Only rules that code created are restored as rules, not a dict from a file.
    """
    data, ours = state.to_json(), {}
    stored = data["context"]["context"]
    rules = stored.get(USER_RULES) if isinstance(stored, dict) else None
    if isinstance(rules, (UserRules, ToolRulesMode)):
        stored = {name: value for name, value in stored.items() if name != USER_RULES}
        data["context"] = {**data["context"], "context": stored}
        ours[USER_RULES] = rules
    return {**data, _OURS: ours}


def as_json(value: Any) -> Any:
    """Encode rules; for the ``default`` of ``json.dumps``."""
    if isinstance(value, ToolRulesMode):
        value = UserRules(value)
    if isinstance(value, UserRules):
        return value.to_dict()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


@attrs.frozen
class SignedText:
    """A stored run before its verification."""

    agent: str
    state: str
    signature: str

    def verified(self, keys: Sequence[bytes]) -> tuple[str, dict[str, Any]]:
        """Return the agent's name and the state; E85 if no key matches."""
        if not any(hmac.compare_digest(_sign(key, self.agent, self.state), self.signature) for key in keys):
            raise ApprovalStateError(
                reason="the stored run was changed, or it was signed with another key; nothing was run"
            )
        return json.loads(self.agent), json.loads(self.state)


def signed(agent: str, state: str, key: bytes) -> str:
    """Return a signed run; ``state`` is ASCII JSON."""
    name = json.dumps(agent)
    return f'{{"{_VERSION}":1,"agent":{name},"signature":"{_sign(key, name, state)}","state":{state}}}'


def read_signed(text: str) -> SignedText | None:
    """Split a signed run; None for another format."""
    text = text.strip(_WHITE_SPACE)
    header = _HEADER.match(text)
    if header is None or not text.endswith("}") or not text.isascii():
        return None
    return SignedText(header[1], text[header.end() : -1], header[2])


def _read_unsigned(text: str) -> dict[str, Any]:
    try:
        state = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ApprovalStateError(reason=f"this is not a stored run: {error}") from error
    if not isinstance(state, dict) or "$schemaVersion" not in state or _VERSION in state:
        raise ApprovalStateError(reason="this is not a stored run, or it was changed; nothing was run")
    return state


def _sign(key: bytes, agent: str, state: str) -> str:
    content = f"{agent}\n{state}".encode("ascii")
    return hmac.new(key, _DOMAIN + content, hashlib.sha256).hexdigest()
