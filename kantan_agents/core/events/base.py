"""The common attributes of events."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, ClassVar, Literal

import attrs

Outcome = Literal["finished", "failed", "cancelled"]
"""How a stage, a model call or a tool call ended."""


@attrs.frozen(kw_only=True)
class EventBase:
    """Base class of all events: their common attributes and methods.

    Use ``Event``, the union of the concrete classes, in annotations; a check of ``event.type`` then narrows
    it to one class.

    Attributes:
        run_id: Id of the run; ``agent_run_id`` in its trace.
        parent_run_id: Id of the run that started this one, for example in a tool; None for an outermost run.
        agent: Name of the active agent; after a handoff, the agent that took over.
        sequence: Number of the event in its run: 1, 2, 3, ... without gaps.
        time: When it happened, in UTC.
        internal: Whether it comes from a model call that a middleware makes for itself. Streams omit these
            events.
    """

    type: ClassVar[str]

    run_id: str
    parent_run_id: str | None
    agent: str
    sequence: int
    time: datetime
    internal: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON data: ``type`` and the attributes, with ``time`` in ISO 8601."""
        fields = {name: getattr(self, name) for name in _names(type(self))}
        return {"type": self.type, **fields, "time": self.time.isoformat()}

    def to_json(self) -> str:
        """Return the event as JSON text on one line, by every definition of a line break."""
        data = self.to_dict()
        text = json.dumps(data, ensure_ascii=False, default=str)
        return text if _is_plain(text) else json.dumps(data, default=str)


def _is_plain(text: str) -> bool:
    """Whether a str is valid UTF-8 without Unicode line breaks."""
    if text.isascii():  # JSON escapes the ASCII line breaks
        return True
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair in a model's answer
        return False
    return len(text.splitlines()) == 1


def _names(kind: type[EventBase]) -> list[str]:
    return [field.name for field in attrs.fields(kind)]
