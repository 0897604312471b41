"""What is kept of a conversation: its turns, each stored when it is made."""

from __future__ import annotations

from typing import Any, Final, Literal

import attrs

Outcome = Literal["open", "finished", "interrupted", "failed"]
"""How the answer of a turn ended; ``"open"`` while it is being made, and after a crash."""

Kind = Literal["turn", "command", "note", "retry", "summary"]
"""A question with its answer, a command of the agent's tools, a note about what the person has done, another
answer in place of the turn before it and its notes, or a summary that stands for all turns before it."""

Item = dict[str, Any]
"""An input item of the SDK, as JSON data."""

LOST: Final = "[This answer was not finished: the chat ended while it was being written.]"


def said(text: str) -> Item:
    """Return a text of the model as an item.

    It has a type, although OpenAI needs none: llama.cpp's Responses API refuses an answer without one.
    """
    return {"type": "message", "role": "assistant", "content": text}


@attrs.frozen
class ChatTurn:
    """A turn of a conversation.

    Attributes:
        number: Its position, from 1.
        kind: What it is.
        question: What the person typed.
        answer: The text of the answer, as far as there is one.
        items: The input items that it adds to the conversation.
        outcome: How the answer ended.
        trace_id: The trace of the answer; None if it was not recorded.
    """

    number: int
    kind: Kind
    question: str
    answer: str = ""
    items: tuple[Item, ...] = ()
    outcome: Outcome = "open"
    trace_id: str | None = None

    @property
    def sent(self) -> list[Item]:
        """The items as the model gets them; an answer that a crash has ended is marked."""
        lost = [said(LOST)] if self.outcome == "open" else []
        return [*self.items, *lost]


@attrs.frozen
class KeptConversation:
    """A conversation with its turns.

    Attributes:
        id: Its id.
        agent: Name of the agent that it was begun with.
        turns: The turns, in order.
    """

    id: str
    agent: str
    turns: tuple[ChatTurn, ...] = ()

    def items(self) -> list[Item]:
        """Return what the model gets: from the newest summary on, without answers that were tried again."""
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
        id: Its id.
        agent: Name of the agent.
        title: The beginning of its first question.
        turns: The number of its turns.
        changed_at: When its newest turn began, in seconds since 1970.
        found: The text around what was searched for; empty in a plain list.
    """

    id: str
    agent: str
    title: str
    turns: int
    changed_at: float
    found: str = ""
