"""Protocols of retrievers, and their data types."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Sequence
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import attrs

from kantan_agents.errors import InvalidOptionError, RetrievalError


@attrs.frozen
class ToolDocument:
    """The searchable description of a tool.

    Attributes:
        name: Name of the tool, unique among the tools of its agent.
        description: Its description; may be empty.
        parameters: The names and descriptions of its parameters, as a single string.
    """

    name: str
    description: str = ""
    parameters: str = ""

    @property
    def text(self) -> str:
        """Name, description and parameters as a single string."""
        return "\n".join(part for part in (self.name, self.description, self.parameters) if part)


def _name(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise InvalidOptionError(option="name", reason=f"must be the name of a ToolDocument, not {value!r:.100}")


def _score(value: Any) -> float:
    # The quick check for a plain float is first: a search may create thousands.
    if type(value) is float or (isinstance(value, Real) and not isinstance(value, bool)):
        score = float(value)
        if math.isfinite(score):
            return score
    raise InvalidOptionError(option="score", reason=f"must be a finite number, not {value!r:.100}")


@attrs.frozen
class ToolMatch:
    """A tool found by a search.

    Attributes:
        name: Name of its ``ToolDocument``.
        score: Quality of the match; comparable only within one search.

    Raises:
        InvalidOptionError: E75, the name is not a str, or the score is not a finite number.
    """

    name: str = attrs.field(converter=_name)
    score: float = attrs.field(converter=_score)


class StaleIndexError(RetrievalError):
    """E57, and the index must be recreated: its content no longer matches the queries."""


@runtime_checkable
class ToolIndex(Protocol):
    """A searchable index of one agent's tools; used by any thread and by concurrent runs."""

    def search(self, query: str, limit: int) -> Sequence[ToolMatch] | Awaitable[Sequence[ToolMatch]]:
        """Return at most ``limit`` matches for ``query``, best first; sync or async."""
        ...


@runtime_checkable
class Retriever(Protocol):
    """Creates an index of tools. It stores no tools itself, so several agents may share it."""

    def index(self, documents: Sequence[ToolDocument]) -> ToolIndex | Awaitable[ToolIndex]:
        """Return an index of ``documents``; async, or sync and then called in a thread."""
        ...


def document_of(tool: Any) -> ToolDocument:
    """Return the document of a function tool."""
    schema = tool.params_json_schema or {}
    words: list[str] = []
    _read_parameters(schema, words, _DEPTH)
    return ToolDocument(
        getattr(tool, "qualified_name", tool.name), tool.description or "", " ".join(words)[:_PARAMETERS]
    )


_DEPTH = 3
_PARAMETERS = 4_000


def _read_parameters(schema: Any, words: list[str], depth: int) -> None:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or not depth:
        return
    for name, value in properties.items():
        words.append(str(name))
        if isinstance(value, dict):
            description = value.get("description")
            if isinstance(description, str):
                words.append(description)
            _read_parameters(value, words, depth - 1)
