"""A request to an ``OfflineServer``."""

from __future__ import annotations

from typing import Any

import attrs

RESPONSES = "/v1/responses"
CHAT_COMPLETIONS = "/v1/chat/completions"


@attrs.frozen
class RecordedRequest:
    """A request that the server received.

    Attributes:
        path: ``/v1/responses`` or ``/v1/chat/completions``.
        body: The JSON body.
        headers: The HTTP headers, names in lower case.
    """

    path: str
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def model(self) -> str:
        """The requested model."""
        return str(self.body.get("model", ""))

    @property
    def streamed(self) -> bool:
        """Whether the reply is streamed."""
        return bool(self.body.get("stream"))

    @property
    def wants_usage(self) -> bool:
        """Whether the reply reports its usage: a streamed chat completion does so only on request."""
        if self.path == RESPONSES or not self.streamed:
            return True
        return bool((self.body.get("stream_options") or {}).get("include_usage"))

    @property
    def system_instructions(self) -> str | None:
        """The instructions, in either API."""
        if self.path == RESPONSES:
            return self.body.get("instructions")
        return next((message["content"] for message in self._messages if _is_system(message)), None)

    @property
    def input(self) -> list[Any]:
        """The items of the input, or the messages other than the instructions."""
        if self.path != RESPONSES:
            return [message for message in self._messages if not _is_system(message)]
        given = self.body.get("input") or []
        return [{"role": "user", "content": given}] if isinstance(given, str) else given

    @property
    def _messages(self) -> list[Any]:
        return self.body.get("messages") or []


def _is_system(message: Any) -> bool:
    return message.get("role") in ("system", "developer")
