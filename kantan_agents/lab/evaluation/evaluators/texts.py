"""Evaluators that compare strings by words, characters or meaning."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from kantan_agents.lab.evaluation.evaluators import overlap
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.evaluation.evaluators.versions import version_of_function, version_of_options
from kantan_agents.lab.evaluation.finished_case import FinishedCase
from kantan_agents.tools.retrieval import EmbeddingRetriever
from kantan_agents.tools.retrieval.retrievers.embeddings import Embed


def normalized(*, name: str = "normalized") -> Evaluator:
    """Return an evaluator: is the output the expected string, apart from case, spaces and punctuation?

    It does not apply to cases whose expected output is not a string.

    Args:
        name: Name of the metric.
    """

    def same(output: str, reference: str) -> bool:
        return overlap.normalized_tokens(output) == overlap.normalized_tokens(reference)

    return _compared("normalized", same, name)


def rouge_l(*, name: str = "rouge_l") -> Evaluator:
    """Return an evaluator: which share of the words do output and expected string have in the same order?

    The score is ROUGE-L, from 0 to 1, for example for summaries. It does not apply to cases whose expected
    output is not a string.

    Args:
        name: Name of the metric.
    """
    return _compared("rouge_l", overlap.rouge_l, name)


def chrf(*, name: str = "chrf") -> Evaluator:
    """Return an evaluator: how many short character sequences do output and expected string share?

    The score is chrF2, from 0 to 1, for translations, and for languages with many inflections or without
    spaces. It does not apply to cases whose expected output is not a string.

    Args:
        name: Name of the metric.
    """
    return _compared("chrf", overlap.chrf, name)


def similar(embed: str | Embed, *, name: str = "similar", version: str | None = None) -> Evaluator:
    """Return an evaluator: how close in meaning are output and expected string?

    The score is the cosine of their vectors, from -1 to 1; which value is close depends on the model. It does
    not apply to cases whose expected output is not a string.

    Args:
        embed: Name of an embedding model, or a function, sync or async, that takes a list of strings and
            returns one vector for each.
        name: Name of the metric.
        version: By default the name of the model, or a hash of the function.

    Raises:
        InvalidOptionError: E75, ``embed`` is something else, or the source of the function is not available
            and no ``version`` is given.
    """
    embedder = EmbeddingRetriever(embed)
    if version is None:
        version = embed if isinstance(embed, str) else version_of_function(embed, "embed")

    async def cosine(output: str, reference: str) -> float:
        import numpy as np

        one, other = [np.frombuffer(each, "<f4") for each in await embedder.vectors_of([output, reference])]
        length = float(np.linalg.norm(one) * np.linalg.norm(other))
        return min(1.0, max(-1.0, float(one @ other) / length)) if length else 0.0

    return _compared("similar", cosine, name, version)


def _compared(
    kind: str, compare: Callable[[str, str], Any], name: str, version: str | None = None
) -> Evaluator:
    async def score(finished: FinishedCase) -> Any:
        if not isinstance(finished.expected, str):
            return None
        value = compare(finished.text, finished.expected)
        return await value if inspect.isawaitable(value) else value

    return Evaluator(name, version_of_options(kind, {} if version is None else {"version": version}), score)
