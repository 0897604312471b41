"""What finds tools by a text: the protocol, and what goes into it and comes out."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Sequence
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import attrs

from kantan_agents.errors import InvalidOptionError, RetrievalError


@attrs.frozen
class ToolDocument:
    """What is known of a tool when tools are looked for.

    Attributes:
        name: What it goes by, unique among the tools of its agent.
        description: What it says of itself; may be empty.
        parameters: The names and descriptions of its parameters, as one text.
    """

    name: str
    description: str = ""
    parameters: str = ""

    @property
    def text(self) -> str:
        """All of it, as one text."""
        return "\n".join(part for part in (self.name, self.description, self.parameters) if part)


def _name(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise InvalidOptionError(option="name", reason=f"must be the name of a ToolDocument, not {value!r:.100}")


def _score(value: Any) -> float:
    # A plain float is told first: thousands may be made in one search.
    if type(value) is float or (isinstance(value, Real) and not isinstance(value, bool)):
        score = float(value)
        if math.isfinite(score):
            return score
    raise InvalidOptionError(option="score", reason=f"must be a finite number, not {value!r:.100}")


@attrs.frozen
class ToolMatch:
    """A tool that was found.

    Attributes:
        name: Name of its ``ToolDocument``.
        score: How well it fits; comparable only within one search.

    Raises:
        InvalidOptionError: E75, the name is no str, or the score no finite number.
    """

    name: str = attrs.field(converter=_name)
    score: float = attrs.field(converter=_score)


class StaleIndexError(RetrievalError):
    """E57, and the index has to be made anew: what it holds no longer goes with what it is asked by."""


@runtime_checkable
class ToolIndex(Protocol):
    """The tools of one agent, ready to be searched; from any thread and any number of runs at once."""

    def search(self, query: str, limit: int) -> Sequence[ToolMatch] | Awaitable[Sequence[ToolMatch]]:
        """Return what fits a text, the best first, at most ``limit`` of them; sync or async."""
        ...


@runtime_checkable
class Retriever(Protocol):
    """Makes an index of tools. It keeps nothing of them itself, so several agents may share one."""

    def index(self, documents: Sequence[ToolDocument]) -> ToolIndex | Awaitable[ToolIndex]:
        """Return an index of ``documents``; sync, and then called in a thread, or async."""
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
