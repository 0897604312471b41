"""``Turn``: a turn of Claude that the API splits into several responses (stop reason ``pause_turn``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MAX_PAUSES: Final = 10
"""How often a turn is continued: a tool of Anthropic that never ends must not cost without limit."""

_PAUSED: Final = "pause_turn"


class Turn:
    """Joins the responses of one turn to one.

    Attributes:
        pauses: Number of times that the model has paused.
        content: The content blocks of all responses.
        usage: The sum of their token counts.
    """

    def __init__(self) -> None:
        self.pauses = 0
        self.content: list[Any] = []
        self.usage: dict[str, Any] = {}
        self._container: Any = None

    def add(self, answer: Any) -> bool:
        """Add a response; return whether the turn has to be continued."""
        if not isinstance(answer, dict) or not isinstance(answer.get("content"), list):
            return False
        self.content += answer["content"]
        if isinstance(answer.get("usage"), dict):
            self.usage = _sum(self.usage, answer["usage"])
        container = answer.get("container")
        if isinstance(container, dict) and container.get("id"):
            self._container = container["id"]
        # The API takes a call of the agent's own tool back only with its result, so the agent runs it first.
        is_paused = answer.get("stop_reason") == _PAUSED and not any(map(_is_call, answer["content"]))
        self.pauses += is_paused
        return is_paused

    @property
    def _sendable(self) -> list[Any]:
        # The API rejects texts without a visible character, although its models write them.
        return [block for block in self.content if not _is_blank(block)]

    @property
    def is_endless(self) -> bool:
        """Whether the turn cannot be continued: it has paused too often, or there is nothing to send back."""
        return self.pauses > MAX_PAUSES or not self._sendable

    def joined(self, answer: Any) -> Any:
        """Return the last response with the content and the usage of the whole turn."""
        if not self.pauses or not isinstance(answer, dict) or not isinstance(answer.get("content"), list):
            return answer
        return {**answer, "content": self.content, "usage": self.usage}

    def continued(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request that continues the turn.

        Args:
            body: The first request of the turn.
        """
        said = {"role": "assistant", "content": self._sendable}
        more: dict[str, Any] = {"messages": [*body["messages"], said]}
        if self._container is not None:
            given = body.get("container")
            more["container"] = (
                {**given, "id": self._container} if isinstance(given, dict) else self._container
            )
        return {**body, **more}


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_use"


def _is_blank(block: Any) -> bool:
    return (
        isinstance(block, dict) and block.get("type") == "text" and not str(block.get("text") or "").strip()
    )


def _sum(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    added = dict(one)
    for name, value in other.items():
        before = one.get(name)
        if isinstance(value, dict):
            added[name] = _sum(before if isinstance(before, dict) else {}, value)
        elif _is_count(value) and _is_count(before):
            added[name] = before + value
        elif value is not None or name not in one:
            added[name] = value
    return added


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
