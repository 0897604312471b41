"""Finds tools by shared words."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from typing import Any

import anyio.to_thread
import attrs

from kantan_agents.support.arguments import checked_int
from kantan_agents.support.extras import extra
from kantan_agents.tools.retrieval.retrievers.retriever import ToolDocument, ToolIndex, ToolMatch
from kantan_agents.tools.retrieval.retrievers.tokens import query_terms, terms_of


def _is_weight(_: object, attribute: attrs.Attribute[int], value: object) -> None:
    checked_int(attribute.name, value, 0, 20)


@attrs.frozen
class BM25Retriever:
    """Finds tools by the words they share with a request, in any mixture of English, Japanese and Chinese.

    English words are reduced to their stems, names such as ``createInvoice`` are split, and Japanese and
    Chinese are read in pairs of characters. It uses no network. It has synonyms only for the most common
    actions, and no translations: a request in one language does not find a tool described in another. Use
    embeddings for that.

    Args:
        name_weight: Weight of the words in a tool's name.
        description_weight: Weight of the words in its description.
        parameter_weight: Weight of the words in its parameters.

    Raises:
        InvalidOptionError: E75, a weight is not an int from 0 to 20.
    """

    name_weight: int = attrs.field(default=4, validator=_is_weight)
    description_weight: int = attrs.field(default=2, validator=_is_weight)
    parameter_weight: int = attrs.field(default=1, validator=_is_weight)

    def index(self, documents: Sequence[ToolDocument]) -> ToolIndex:
        """Return the index of ``documents``; takes about a second for 10,000 tools."""
        terms = [self._terms(document) for document in documents]
        return BM25Index.of([document.name for document in documents], terms)

    def _terms(self, document: ToolDocument) -> list[str]:
        return (
            terms_of(document.name) * self.name_weight
            + terms_of(document.description) * self.description_weight
            + terms_of(document.parameters) * self.parameter_weight
        )


_INLINE = 20_000
_LONGEST_QUERY = 200
_SYNONYM_WEIGHT = 1 / 3


@cache
def _bm25s() -> Any:
    # The import takes a third of a second, so it happens on first use and in a thread.
    with extra("retrieval"):
        import bm25s

    # bm25s enables its own debug messages, which would reach the application's logs.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    return bm25s


@attrs.frozen(eq=False, repr=False)
class BM25Index:
    """One agent's index."""

    names: Sequence[str]
    vocabulary: dict[str, int]
    model: Any = None
    starts: Sequence[int] = ()

    @classmethod
    def of(cls, names: Sequence[str], terms: Sequence[Sequence[str]]) -> BM25Index:
        """Index these terms."""
        bm25s = _bm25s()

        vocabulary: dict[str, int] = {}
        ids = [[vocabulary.setdefault(term, len(vocabulary)) for term in found] for found in terms]
        if not vocabulary:
            return cls(names, {})
        model = bm25s.BM25(k1=1.2, b=0.6, method="lucene")
        model.index((ids, vocabulary), show_progress=False)
        return cls(names, vocabulary, model, model.scores["indptr"].tolist())

    async def search(self, query: str, limit: int) -> Sequence[ToolMatch]:
        """Return matches that share a word."""
        if self.is_quick:
            return self.search_now(query, limit)
        return await anyio.to_thread.run_sync(self.search_now, query, limit)

    @property
    def is_quick(self) -> bool:
        """Whether a search is fast enough to run without a thread."""
        return len(self.names) <= _INLINE

    def search_now(self, query: str, limit: int) -> list[ToolMatch]:
        """Search synchronously."""
        postings = self._postings(query)
        if not postings or limit < 1:
            return []
        import numpy as np

        places, weights = self.model.scores["indices"], self.model.scores["data"]
        # The request's own words count more than synonyms.
        counted = [weights[found] if own else weights[found] * _SYNONYM_WEIGHT for found, own in postings]
        reached = np.concatenate([places[found] for found, _ in postings])
        scores = np.bincount(reached, np.concatenate(counted), len(self.names))
        hits = (scores >= scores.max() / 2).nonzero()[0]  # few, and usually enough
        if len(hits) < limit:
            hits = (scores > 0).nonzero()[0]
        if len(hits) > limit:
            values = scores[hits]
            least = np.partition(values, len(hits) - limit)[-limit]
            above = hits[values > least]
            hits = np.concatenate([above, hits[values == least][: limit - len(above)]])
        # Equal scores in the order in which the tools were given.
        ordered = hits[np.argsort(-scores[hits], kind="stable")].tolist()
        return [
            ToolMatch(self.names[place], score)
            for place, score in zip(ordered, scores[ordered].tolist(), strict=True)
        ]

    def _postings(self, query: str) -> list[tuple[slice, bool]]:
        numbers = ((self.vocabulary.get(term), own) for term, own in query_terms(query)[:_LONGEST_QUERY])
        known = [
            (slice(self.starts[number], self.starts[number + 1]), own)
            for number, own in numbers
            if number is not None
        ]
        # Words in more than half of the tools do not distinguish them, and are the slowest to add up.
        half = len(self.names) / 2
        selective = [(found, own) for found, own in known if found.stop - found.start <= half]
        return selective if any(own for _, own in selective) else known
