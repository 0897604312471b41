"""Calls that wait for approval, and decisions on them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from kantan_agents.errors import InvalidOptionError


@attrs.frozen
class PendingCall:
    """A tool call that needs approval.

    Attributes:
        call_id: The model's id for the call.
        tool: Name of the tool.
        arguments: The arguments of the call; JSON for a function tool.
        agent: Name of the agent whose model called the tool.
        names: All names that rules know the tool by, starting with ``tool``. A tool of an MCP server also has
            its own name, ``mcp__SERVER__TOOL`` and ``mcp__SERVER``. In the list of ``pending``, only the name
            that the model saw is known.
    """

    call_id: str
    tool: str
    arguments: str
    agent: str
    names: tuple[str, ...] = attrs.field(eq=False, kw_only=True)

    @names.default
    def _(self) -> tuple[str, ...]:
        return (self.tool,)

    @property
    def values(self) -> dict[str, Any]:
        """The arguments as a dict; empty if they are not a JSON object."""
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
    """Approves a tool call, optionally with edited arguments.

    Attributes:
        arguments: Arguments that replace the model's: a mapping or a JSON object as a str. None uses the
            model's arguments. The tool rules are checked against the edited arguments.

    Raises:
        InvalidOptionError: E75, ``arguments`` is not a JSON object.
    """

    arguments: str | None = attrs.field(default=None, converter=_as_json)


@attrs.frozen
class Rejected:
    """Rejects a tool call.

    Attributes:
        reason: The result that the model receives for the call.
    """

    reason: str = attrs.field(default="The call was not approved.", converter=_as_reason)


Decision = Approved | Rejected
ApprovalHandler = Callable[[PendingCall], Awaitable[Decision]]
"""The run waits for its decision."""

ApprovalRule = Callable[[PendingCall], "bool | Awaitable[bool]"]


@attrs.frozen
class Edit:
    """Edited arguments of a call."""

    tool: str
    written: str
    arguments: str


Edits = Mapping[str, Edit]
