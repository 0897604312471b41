"""Which tool a call's id belongs to, as far as a conversation has gone."""

from __future__ import annotations

from kantan_agents.protocol.provider import Message


class CallNames:
    """The names of the tools called so far, by the ids of the calls."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._open: dict[str, str] = {}

    def note(self, message: Message) -> None:
        """Remember the calls of a message."""
        for segment in message.segments:
            if segment.tool_call is not None:
                self._names[segment.tool_call.id] = self._open[segment.tool_call.id] = segment.tool_call.name

    def get(self, call_id: str | None) -> str | None:
        """Return the name of the tool that was called; None if there was no such call."""
        return None if call_id is None else self._names.get(call_id)

    def next_open(self, name: str | None) -> str | None:
        """Return the id of the first call of a tool that is not answered; None if there is none."""
        return next((call_id for call_id, called in self._open.items() if called == name), None)

    def answered(self, call_id: str) -> None:
        """Remember that a call has been answered."""
        self._open.pop(call_id, None)
