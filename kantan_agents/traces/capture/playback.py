"""What a run is given instead of models, tools and servers when it is replayed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextvars import ContextVar
from typing import Any, Final, Protocol


class Tape(Protocol):
    """Answers the calls of one run.

    Attributes:
        asks_models: Whether models are really asked; then retries and time limits are those of any run.
        is_retried: Whether the recorded run has made the request again whose answer was the last error.
    """

    asks_models: bool
    is_retried: bool

    def form_memory(self, call: Any) -> Any:
        """Return what is known about the forms of structured requests; None for what the process knows."""
        ...

    def has_cached(self, call: Any, model: Any, request: Any) -> bool:
        """Return whether the answer to a model call came from a cache in the recorded run."""
        ...

    async def answer(self, call: Any, model: Any, request: Any) -> Any:
        """Return the answer to a model call, or raise its error."""
        ...

    def stream(self, call: Any, model: Any, request: Any) -> AsyncIterator[Any]:
        """Return the stream of the answer to a model call."""
        ...

    def lets_run(self, call: Any) -> bool:
        """Return whether a tool call is really made."""
        ...

    async def tool(self, call: Any) -> Any:
        """Return the result of a tool call, or raise its error."""
        ...

    def check_offered(self, agent: str, tools: Sequence[Any]) -> None:
        """Raise if the SDK would start something to offer an agent's tools, as it does with computers."""
        ...

    def rejection(self, call: Any) -> Any:
        """Return what the model got instead of a result if a person rejected a call; None if it was made."""
        ...

    def listing(self, server: str) -> Sequence[Any] | str:
        """Return the tools that an MCP server has listed, or why it could not be used."""
        ...

    def context(self, agent: str, context: dict[str, Any]) -> None:
        """Put the values into the context that the instructions of an agent are going to read."""
        ...

    def model(self, name: str | None) -> Any:
        """Return a model that stands for one whose key or URL is not configured; None if none may."""
        ...


class Playback(Protocol):
    """Answers the calls of a run and of all runs inside it."""

    def tape_for(self, run: Any) -> Tape:
        """Return what answers the calls of a run that begins."""
        ...

    def check_embedding(self, model: str) -> None:
        """Raise if an embedding model may not be asked."""
        ...


current_playback: ContextVar[Playback | None] = ContextVar("kantan_agents_playback", default=None)
"""The playback that runs which begin in this context belong to; None outside of a replay."""

IS_OWN_TOOL: Final = "_kantan_is_own_tool"
"""Attribute of tools of this library that only choose or start something inside the run, and so are replayed
by running them: delegation, the search for tools."""
