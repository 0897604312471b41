"""Finds tools by meaning."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
import attrs

from kantan_agents.errors import InvalidOptionError, RetrievalError
from kantan_agents.models.resolve import embedding_clients
from kantan_agents.support.arguments import checked_int
from kantan_agents.support.own_calls import MOST_SECONDS
from kantan_agents.support.storable_text import whole_text
from kantan_agents.tools.retrieval.retrievers.retriever import (
    StaleIndexError,
    ToolDocument,
    ToolIndex,
    ToolMatch,
)
from kantan_agents.tools.retrieval.retrievers.vector_cache import VectorCache
from kantan_agents.traces.capture.playback import current_playback

Vectors: TypeAlias = Sequence[Sequence[float]]
Embed: TypeAlias = Callable[[list[str]], "Vectors | Awaitable[Vectors]"]
"""Takes strings and returns one vector for each, in order; async, or sync and then called in a thread."""

_LONGEST = 8_000
_NUMBER_BYTES = 4
_RECENT = 32


def _embed(value: Any) -> Any:
    if (isinstance(value, str) and value.strip()) or (callable(value) and not isinstance(value, type)):
        return value
    reason = f"must be a model's name or a function of texts, not {value!r}"
    raise InvalidOptionError(option="embed", reason=reason)


def _path(value: Any) -> Path | None:
    if value is None or isinstance(value, (str, Path)):
        return None if value is None else Path(value)
    raise InvalidOptionError(option="cache", reason=f"must be the path of a file or None, not {value!r}")


def _is_batch(_: object, attribute: attrs.Attribute[int], value: object) -> None:
    checked_int(attribute.name, value, 1, 2_048)


@attrs.frozen
class EmbeddingRetriever:
    """Finds tools with a meaning similar to the request, across languages if the model supports them.

        EmbeddingRetriever("openai/text-embedding-3-small", cache="tools.vectors")

    The tools are embedded once. With ``cache``, the vectors are stored on disk and only changed tools are
    embedded again; if the model returns vectors of another length, all are. Each search sends the user's text
    to the model, which costs one request.

    Args:
        embed: A model name for kantan-llm, whose API has ``/embeddings``, or a function.
        cache: SQLite file for the vectors, created if necessary; processes may share it. A file that is
            another program's database is not touched. None for no cache.
        model_name: Name under which the vectors are stored; required with a function and a cache, because
            another function computes other vectors.
        batch: Number of strings in one request.

    Raises:
        InvalidOptionError: E75, an option has an invalid value.
    """

    embed: str | Embed = attrs.field(converter=_embed)
    cache: Path | None = attrs.field(default=None, converter=_path, kw_only=True)
    model_name: str | None = attrs.field(default=None, kw_only=True)
    batch: int = attrs.field(default=128, validator=_is_batch, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if self.model_name is not None and not isinstance(self.model_name, str):
            reason = f"must be a name or None, not {self.model_name!r}"
            raise InvalidOptionError(option="model_name", reason=reason)
        if self.cache is not None and not isinstance(self.embed, str) and not self.model_name:
            reason = "must be given with a function and a cache: the vectors are kept under it"
            raise InvalidOptionError(option="model_name", reason=reason)

    async def index(self, documents: Sequence[ToolDocument]) -> ToolIndex:
        """Return the index of ``documents``, with vectors from the cache or the model.

        Raises:
            RetrievalError: E57, the model did not return one finite vector of equal length for each document.
        """
        texts = [document.text[:_LONGEST] for document in documents]
        wanted = {text: _key(self._name, text) for text in texts}
        vectors = await self._cached(wanted)
        matrix = await anyio.to_thread.run_sync(_unit_vectors, [vectors[text] for text in texts])
        return _VectorIndex([document.name for document in documents], matrix, self, list(wanted.values()))

    async def vectors_of(self, texts: list[str]) -> list[bytes]:
        """Return a vector for each string, as little-endian 32-bit floats.

        Raises:
            RetrievalError: E57, the model did not return one finite vector of equal length for each string.
        """
        made: list[bytes] = []
        for start in range(0, len(texts), self.batch):
            part = texts[start : start + self.batch]
            with anyio.move_on_after(MOST_SECONDS) as scope:
                vectors = await self._ask(part)
            if scope.cancelled_caught:
                raise _error(f"embed() has returned no vectors in {MOST_SECONDS:g} seconds")
            made += await anyio.to_thread.run_sync(_as_bytes, vectors, len(part))
        return made

    async def forget(self, keys: Sequence[bytes]) -> None:
        """Delete vectors from the cache, because the model behind its name has changed."""
        if self.cache is not None:
            await anyio.to_thread.run_sync(VectorCache(self.cache).delete, keys)

    async def _cached(self, wanted: Mapping[str, bytes]) -> dict[str, bytes]:
        cache = VectorCache(self.cache) if self.cache is not None else None
        known = await anyio.to_thread.run_sync(cache.read, list(wanted.values())) if cache else {}
        known = await anyio.to_thread.run_sync(_finite_vectors, known)
        missing = [text for text, key in wanted.items() if key not in known]
        made = dict(zip(missing, await self.vectors_of(missing), strict=True))
        if len({len(vector) for vector in (*made.values(), *known.values())}) > 1:
            missing = list(wanted)
            made = dict(zip(missing, await self.vectors_of(missing), strict=True))
        if cache is not None and made:
            await anyio.to_thread.run_sync(cache.write, {wanted[text]: made[text] for text in made})
        return {text: made[text] if text in made else known[key] for text, key in wanted.items()}

    @property
    def _name(self) -> str:
        return self.model_name or (self.embed if isinstance(self.embed, str) else "")

    async def _ask(self, texts: list[str]) -> Any:
        if isinstance(self.embed, str):
            playback = current_playback.get()
            if playback is not None:
                playback.check_embedding(self.embed)
            clients, model = await embedding_clients(self.embed)
            answer = await clients.client().embeddings.create(
                model=model, input=[whole_text(text) for text in texts], encoding_format="float"
            )
            return [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
        if inspect.iscoroutinefunction(self.embed):
            return await self.embed(texts)
        made: Any = await anyio.to_thread.run_sync(self.embed, texts, abandon_on_cancel=True)
        return await made if inspect.isawaitable(made) else made


@attrs.frozen(eq=False, repr=False)
class _VectorIndex:
    names: Sequence[str]
    matrix: Any
    retriever: EmbeddingRetriever
    keys: Sequence[bytes]
    recent: dict[str, list[bytes]] = attrs.field(factory=dict)

    async def search(self, query: str, limit: int) -> Sequence[ToolMatch]:
        """By cosine similarity."""
        if not self.names:
            return []
        vector = self.recent.get(query) or await self.retriever.vectors_of([query])
        width, of_tools = len(vector[0]) // _NUMBER_BYTES, self.matrix.shape[1]
        if width != of_tools:
            await self.retriever.forget(self.keys)
            raise StaleIndexError(
                retriever="EmbeddingRetriever",
                reason=f"the text's vector has {width} numbers, those of the tools {of_tools}",
            )
        self._remember(query, vector)
        return await anyio.to_thread.run_sync(self._nearest, vector, limit)

    def _remember(self, query: str, vector: list[bytes]) -> None:
        # Repeated searches, with a larger limit or in a later turn, embed a query once.
        self.recent[query] = vector
        for oldest in list(self.recent)[:-_RECENT]:
            self.recent.pop(oldest, None)

    def _nearest(self, vector: list[bytes], limit: int) -> list[ToolMatch]:
        import numpy as np

        query = _unit_vectors(vector)
        scores = self.matrix @ query[0]
        best = np.argsort(-scores, kind="stable")[:limit]
        return [ToolMatch(self.names[place], float(scores[place])) for place in best]


def _key(model: str, text: str) -> bytes:
    return hashlib.sha256(f"{len(model)}:{model}:{text}".encode(errors="surrogatepass")).digest()


def _as_bytes(vectors: Any, count: int) -> list[bytes]:
    import numpy as np

    try:
        matrix = np.asarray(vectors, dtype="<f4")
    except (TypeError, ValueError) as error:
        raise _error(f"embed() must return vectors of numbers, all of one length ({error!s:.100})") from error
    if matrix.ndim != _DIMENSIONS or matrix.shape[0] != count or not matrix.shape[1]:
        raise _error(f"embed() must return {count} vectors of numbers, not an array of shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise _error("embed() has returned a vector with a number that is not finite")
    return [row.tobytes() for row in matrix]


_DIMENSIONS = 2


def _finite_vectors(vectors: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    import numpy as np

    return {key: vector for key, vector in vectors.items() if np.isfinite(np.frombuffer(vector, "<f4")).all()}


def _unit_vectors(vectors: Sequence[bytes]) -> Any:
    import numpy as np

    if len({len(vector) for vector in vectors}) > 1:
        raise _error("embed() has returned vectors of several lengths")
    matrix = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1 if vectors else 0)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(lengths > 0, lengths, 1)


def _error(reason: str) -> RetrievalError:
    return RetrievalError(retriever="EmbeddingRetriever", reason=reason)
