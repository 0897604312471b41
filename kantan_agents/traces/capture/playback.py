"""Replaces models, tools and servers in a replay."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextvars import ContextVar
from typing import Any, Final, Protocol


class Tape(Protocol):
    """Answers the calls of one run; with ``asks_models``, models are really called."""

    asks_models: bool
    is_retried: bool

    def form_memory(self, call: Any) -> Any:
        """Return the recorded forms of structured requests, or None."""
        ...

    def has_cached(self, call: Any, model: Any, request: Any) -> bool:
        """Return whether a cache gave the recorded answer."""
        ...

    async def answer(self, call: Any, model: Any, request: Any) -> Any:
        """Return or raise the result of a model call."""
        ...

    def stream(self, call: Any, model: Any, request: Any) -> AsyncIterator[Any]:
        """Stream the answer to a model call."""
        ...

    def lets_run(self, call: Any) -> bool:
        """Return whether a tool call is really executed."""
        ...

    async def tool(self, call: Any) -> Any:
        """Return or raise the result of a tool call."""
        ...

    def check_offered(self, agent: str, tools: Sequence[Any]) -> None:
        """Raise if offering the tools starts something, as with computers."""
        ...

    def rejection(self, call: Any) -> Any:
        """Return the result for a call that a reviewer rejected, or None."""
        ...

    def listing(self, server: str) -> Sequence[Any] | str:
        """Return an MCP server's tools, or the reason of a failure."""
        ...

    def context(self, agent: str, context: dict[str, Any]) -> None:
        """Set the values that an agent's instructions will read."""
        ...

    def model(self, name: str | None) -> Any:
        """Return a stand-in for an unconfigured model, or None."""
        ...


class Playback(Protocol):
    """Answers the calls of a run and of its inner runs."""

    def tape_for(self, run: Any) -> Tape:
        """Return the tape for a starting run."""
        ...

    def check_embedding(self, model: str) -> None:
        """Raise if an embedding model must not be called."""
        ...


current_playback: ContextVar[Playback | None] = ContextVar("kantan_agents_playback", default=None)

IS_OWN_TOOL: Final = "_kantan_is_own_tool"
"""Marks tools that only affect the run, such as delegation: a replay runs them."""
