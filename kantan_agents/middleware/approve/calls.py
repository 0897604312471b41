"""Tool calls that wait for a human, and what may be decided about them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from kantan_agents.errors import InvalidOptionError


@attrs.frozen
class PendingCall:
    """A tool call that needs somebody's approval.

    Attributes:
        call_id: The model's id for the call.
        tool: Name of the tool.
        arguments: What it is to be called with: JSON text for a function tool.
        agent: Name of the agent whose model called the tool.
    """

    call_id: str
    tool: str
    arguments: str
    agent: str

    @property
    def values(self) -> dict[str, Any]:
        """The arguments as a dict; empty if they are no JSON object."""
        try:
            values = json.loads(self.arguments)
        except ValueError:
            return {}
        return values if isinstance(values, dict) else {}


def _as_json(arguments: Any) -> str | None:
    if arguments is None:
        return None
    try:
        text = arguments if isinstance(arguments, str) else json.dumps(dict(arguments), ensure_ascii=False)
        values = json.loads(text)
    except (TypeError, ValueError) as error:
        raise InvalidOptionError(option="arguments", reason=f"must be a JSON object: {error}") from None
    if not isinstance(values, dict):
        raise InvalidOptionError(option="arguments", reason=f"must be a JSON object, not {text[:80]}")
    return text


def _as_reason(reason: Any) -> str:
    if not isinstance(reason, str):
        raise InvalidOptionError(option="reason", reason=f"must be a str, not {reason!r}")
    return reason


@attrs.frozen
class Approved:
    """The call may be made.

    Attributes:
        arguments: What the tool is to be called with instead: a mapping, or JSON text. None leaves them.
            The tool rules are asked about these.

    Raises:
        InvalidOptionError: E75, they are no JSON object.
    """

    arguments: str | None = attrs.field(default=None, converter=_as_json)


@attrs.frozen
class Rejected:
    """The call must not be made.

    Attributes:
        reason: What the model reads as the result.
    """

    reason: str = attrs.field(default="The call was not approved.", converter=_as_reason)


Decision = Approved | Rejected
"""What may be decided about a call."""

ApprovalHandler = Callable[[PendingCall], Awaitable[Decision]]
"""Asked about each call that needs an approval; the run waits for its answer."""

ApprovalRule = Callable[[PendingCall], "bool | Awaitable[bool]"]
"""Says whether a call needs an approval."""

Edits = Mapping[str, str]
"""Arguments that were edited, by the id of the call."""
