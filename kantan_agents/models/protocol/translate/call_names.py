"""``CallNames``: tool names by call id."""

from __future__ import annotations

from kantan_agents.models.protocol.provider import Message


class CallNames:
    """Maps call ids to tool names."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._open: dict[str, str] = {}

    def add(self, message: Message) -> None:
        """Add a message's calls."""
        for segment in message.segments:
            if segment.tool_call is not None:
                self._names[segment.tool_call.id] = self._open[segment.tool_call.id] = segment.tool_call.name

    def get(self, call_id: str | None) -> str | None:
        """Return a call's tool name."""
        return None if call_id is None else self._names.get(call_id)

    def next_open(self, name: str | None) -> str | None:
        """Return the id of a tool's first open call."""
        return next((call_id for call_id, called in self._open.items() if called == name), None)

    def mark_answered(self, call_id: str) -> None:
        """Record that a call has a result."""
        self._open.pop(call_id, None)
