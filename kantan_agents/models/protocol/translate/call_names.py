"""``CallNames``: the tool name of each call id while a conversation is translated."""

from __future__ import annotations

from kantan_agents.models.protocol.provider import Message


class CallNames:
    """Maps the ids of the tool calls seen so far to the names of their tools."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._open: dict[str, str] = {}

    def add(self, message: Message) -> None:
        """Add the calls of a message."""
        for segment in message.segments:
            if segment.tool_call is not None:
                self._names[segment.tool_call.id] = self._open[segment.tool_call.id] = segment.tool_call.name

    def get(self, call_id: str | None) -> str | None:
        """Return the tool name of a call; None if there was no such call."""
        return None if call_id is None else self._names.get(call_id)

    def next_open(self, name: str | None) -> str | None:
        """Return the id of a tool's first call without a result; None if every call has one."""
        return next((call_id for call_id, called in self._open.items() if called == name), None)

    def mark_answered(self, call_id: str) -> None:
        """Record that a call has a result."""
        self._open.pop(call_id, None)
