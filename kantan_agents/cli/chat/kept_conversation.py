"""A stored conversation and its turns."""

from __future__ import annotations

from typing import Any, Final, Literal

import attrs

Outcome = Literal["open", "finished", "interrupted", "failed"]
"""How a turn's answer ended; ``"open"`` while it is written, and after a crash."""

Kind = Literal["turn", "command", "note", "retry", "summary"]
"""A question with its answer, a command, a note about the user, a retry, or a summary.

A retry replaces the previous turn and its notes; a summary replaces all previous turns.
"""

Item = dict[str, Any]

LOST: Final = "[This answer was not finished: the chat ended while it was being written.]"


def said(text: str) -> Item:
    """Return a message of the model. Its type is required by llama.cpp's Responses API."""
    return {"type": "message", "role": "assistant", "content": text}


@attrs.frozen
class ChatTurn:
    """A turn; ``items`` are its model input."""

    number: int
    kind: Kind
    question: str
    answer: str = ""
    items: tuple[Item, ...] = ()
    outcome: Outcome = "open"
    trace_id: str | None = None

    @property
    def sent(self) -> list[Item]:
        """The items; an answer cut off by a crash gets a note."""
        lost = [said(LOST)] if self.outcome == "open" else []
        return [*self.items, *lost]


@attrs.frozen
class KeptConversation:
    """A conversation; ``agent`` is the name of its first agent."""

    id: str
    agent: str
    turns: tuple[ChatTurn, ...] = ()

    def items(self) -> list[Item]:
        """Return the input from the latest summary on, without retried answers."""
        summaries = [index for index, turn in enumerate(self.turns) if turn.kind == "summary"]
        recent = self.turns[summaries[-1] if summaries else 0 :]
        left: list[ChatTurn] = []
        is_replaced = False
        for turn in reversed(recent):
            if not is_replaced:
                left.append(turn)
            is_replaced = turn.kind == "retry" or (is_replaced and turn.kind == "note")
        return [item for turn in reversed(left) for item in turn.sent]


@attrs.frozen
class ListedConversation:
    """A conversation in a list.

    Attributes:
        title: The start of its first question.
        changed_at: Start of its latest turn, in seconds since 1970.
        found: The text around a search hit.
    """

    id: str
    agent: str
    title: str
    turns: int
    changed_at: float
    found: str = ""
