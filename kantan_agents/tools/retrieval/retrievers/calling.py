"""Calls retrievers and indexes, sync ones in a thread, and validates their results."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from kantan_agents.errors import RetrievalError
from kantan_agents.tools.retrieval.retrievers.retriever import Retriever, ToolDocument, ToolIndex, ToolMatch

_Result = TypeVar("_Result")


async def in_own_task(ask: Callable[[], Awaitable[_Result]]) -> _Result:
    """Await in a task, so that its own cancellation becomes a RuntimeError."""
    made: list[_Result] = []
    failures: list[Exception] = []

    async def work() -> None:
        try:
            made.append(await ask())
        except Exception as error:  # noqa: BLE001 - raised below, not in an exception group
            failures.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(work)
    if failures:
        raise failures[0]
    if not made:
        raise RuntimeError("it was cancelled from within")
    return made[0]


async def make_index(retriever: Retriever, documents: Sequence[ToolDocument]) -> ToolIndex:
    """Return a retriever's index; E57 if the result has no ``search`` method."""
    made: Any
    if inspect.iscoroutinefunction(retriever.index):
        made = await retriever.index(documents)
    else:
        made = await anyio.to_thread.run_sync(retriever.index, documents, abandon_on_cancel=True)
        if inspect.isawaitable(made):
            made = await made
    if not callable(getattr(made, "search", None)):
        raise RetrievalError(
            retriever=type(retriever).__name__,
            reason=f"index() must return an object with search(), not {type(made).__name__}",
        )
    return made  # type: ignore[no-any-return]


async def search_index(index: ToolIndex, query: str, limit: int) -> Sequence[ToolMatch]:
    """Return matches; E57 for another result."""
    found: Any
    if inspect.iscoroutinefunction(index.search):
        found = await index.search(query, limit)
    else:
        found = await anyio.to_thread.run_sync(index.search, query, limit, abandon_on_cancel=True)
        if inspect.isawaitable(found):
            found = await found
    if not isinstance(found, (list, tuple)) or not all(isinstance(match, ToolMatch) for match in found):
        raise RetrievalError(
            retriever=type(index).__name__,
            reason=f"search() must return a list of ToolMatch, not {found!r:.100}",
        )
    return found
