"""Combines retrievers by ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.tools.retrieval.retrievers.calling import in_own_task, make_index, search_index
from kantan_agents.tools.retrieval.retrievers.retriever import Retriever, ToolDocument, ToolIndex, ToolMatch

_RANK_OFFSET = 60
"""As the authors of reciprocal rank fusion chose it; larger values flatten the first ranks."""


def _checked(retrievers: Any) -> tuple[Retriever, ...]:
    given = tuple(retrievers) if isinstance(retrievers, (list, tuple)) else ()
    if not given or not all(callable(getattr(one, "index", None)) for one in given):
        reason = f"must be a list of at least one retriever, not {retrievers!r}"
        raise InvalidOptionError(option="retrievers", reason=reason)
    return given


@attrs.frozen
class CombinedRetriever:
    """Combines the rankings of several retrievers (reciprocal rank fusion).

    Scores of different retrievers cannot be compared, ranks can. A tool ranked high by two of them precedes a
    tool found by only one.

    Args:
        retrievers: The retrievers, which are searched concurrently.

    Raises:
        InvalidOptionError: E75, ``retrievers`` is not a list of retrievers.
    """

    retrievers: Sequence[Retriever] = attrs.field(converter=_checked)

    async def index(self, documents: Sequence[ToolDocument]) -> ToolIndex:
        """Return an index that searches the indexes of all retrievers."""
        return _CombinedIndex([await make_index(retriever, documents) for retriever in self.retrievers])


@attrs.frozen(eq=False)
class _CombinedIndex:
    indexes: Sequence[ToolIndex]

    async def search(self, query: str, limit: int) -> Sequence[ToolMatch]:
        found: list[Sequence[ToolMatch]] = [()] * len(self.indexes)
        failures: list[Exception] = []

        async def ask(place: int) -> None:
            try:
                found[place] = await in_own_task(lambda: search_index(self.indexes[place], query, limit))
            except Exception as error:  # noqa: BLE001 - raised below, not in an exception group
                failures.append(error)

        async with anyio.create_task_group() as group:
            for place in range(len(self.indexes)):
                group.start_soon(ask, place)
        if failures:
            raise failures[0]
        return fused(found, limit)


def fused(rankings: Sequence[Sequence[ToolMatch]], limit: int) -> list[ToolMatch]:
    """Merge rankings; equal sums keep the order of the first rankings."""
    sums: dict[str, float] = {}
    for ranking in rankings:
        for rank, name in enumerate(dict.fromkeys(match.name for match in ranking)):
            sums[name] = sums.get(name, 0.0) + 1 / (_RANK_OFFSET + rank + 1)
    best = sorted(sums.items(), key=lambda item: -item[1])[:limit]
    return [ToolMatch(name, score) for name, score in best]
