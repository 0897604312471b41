"""``/retry``: its input and errors."""

from __future__ import annotations

from itertools import takewhile
from typing import Final

import attrs
import httpx
from agents import MaxTurnsExceeded
from openai import APIConnectionError

from kantan_agents.cli.chat.kept_conversation import ChatTurn, Item
from kantan_agents.cli.chat.mentions import NOTE
from kantan_agents.cli.chat.progress import portable
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.core.items import CALLS_FOR_SDK, is_answer, is_reasoning
from kantan_agents.errors import ChatCommandError, ProviderRequestError
from kantan_agents.models.protocol.http.error_bodies import is_out_of_credit

RETRY: Final = "/retry"
_PASSING: Final = (408, 409, 429)
_SERVER_ERROR: Final = 500
_OF_CONNECTIONS: Final = (APIConnectionError, ProviderRequestError, httpx.TransportError, ConnectionError)


@attrs.frozen
class Retried:
    """A turn to retry."""

    question: str
    before: list[Item]
    begun: list[Item]

    def notes(self) -> list[str]:
        """Return notes for the user about it."""
        calls = sum(item.get("type") in CALLS_FOR_SDK for item in self.begun)
        kept = [f"kept, with the results: {counted(calls, 'tool call')}"] if calls else []
        return [f"> {self.question}", *kept]


def last_turn(turns: tuple[ChatTurn, ...], items: list[Item]) -> Retried:
    """Return the last turn and the notes after it; E196 without an answer to retry."""
    notes = list(takewhile(lambda turn: turn.kind == "note", reversed(turns)))[::-1]
    if len(notes) == len(turns):
        raise _refused("nothing has been said yet; type a message")
    last = turns[-1 - len(notes)]
    sent, noted = last.sent, [item for turn in notes for item in turn.sent]
    if last.kind == "summary":
        raise _refused("the conversation is a summary now; type the message again")
    if last.kind == "command":
        raise _refused("the last line was a command, which may have done something; type it again")
    if last.outcome == "finished" and without_answer(sent) == sent:
        raise _refused("the last answer is the result of a tool; type a new message")
    if items[-len(sent) - len(noted) :] != [*sent, *noted]:
        sent = portable(sent)  # as after `/resume` and `/model`
    begun = [*without_answer(sent), *noted]
    if noted:  # some models answer only a user's message
        begun.append({"role": "user", "content": NOTE.format("The user wants another answer.")})
    return Retried(last.question, items[: -len(sent) - len(noted)], begun)


def _refused(reason: str) -> ChatCommandError:
    return ChatCommandError(command=RETRY, reason=reason)


def without_answer(items: list[Item]) -> list[Item]:
    """Return a turn's items up to the message or the last tool call, whose effects stay."""
    end = len(items)
    while end and (is_answer(items[end - 1]) or is_reasoning(items[end - 1])):
        end -= 1
    return items[:end]


def may_pass(error: BaseException) -> bool:
    """Return whether a retry may succeed, as after a rate limit."""
    if is_out_of_credit(error):
        return False
    if isinstance(error, MaxTurnsExceeded):  # it continues after the tool calls
        return True
    status = error.status if isinstance(error, ProviderRequestError) else getattr(error, "status_code", None)
    if isinstance(status, int):
        return status in _PASSING or status >= _SERVER_ERROR
    return isinstance(error, _OF_CONNECTIONS)
