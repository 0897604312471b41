"""How an agent with many tools chooses what it shows the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.retrieval.retrievers.bm25 import BM25Retriever
from kantan_agents.retrieval.retrievers.retriever import Retriever
from kantan_agents.support.arguments import checked_int, checked_number

GROWTH = 4
"""How many times ``top_n`` tools a run may have in view, besides those that always are."""


def _top_n(value: Any) -> int:
    return checked_int("top_n", value, 1, 1_000)


def _is_positive(_: object, attribute: attrs.Attribute[float], value: object) -> None:
    checked_number(attribute.name, value, above_zero=True)


def _names(value: Any) -> tuple[str, ...]:
    listed = tuple(value) if isinstance(value, (list, tuple, set, frozenset)) else None
    if listed is None or not all(isinstance(name, str) and name for name in listed):
        raise InvalidOptionError(option="always", reason=f"must be a list of tool names, not {value!r}")
    return tuple(dict.fromkeys(listed))


def _retriever(value: Any) -> Retriever:
    if isinstance(value, type) or not callable(getattr(value, "index", None)):
        raise InvalidOptionError(
            option="retriever", reason=f"must have a method index(documents), not {value!r}"
        )
    return value  # type: ignore[no-any-return]


def _find_tools(value: Any) -> str | None:
    if value is None or (isinstance(value, str) and value.isidentifier() and value.isascii()):
        return value
    raise InvalidOptionError(option="find_tools", reason=f"must be a tool's name or None, not {value!r}")


def _switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidOptionError(option="provider_search", reason=f"must be True or False, not {value!r}")


@attrs.frozen
class ToolRetrieval:
    """Shows the model those of an agent's tools that fit the input; it may ask for more (spec protocol 6).

        Agent("desk", "Help.", tools=thousands, tool_retrieval=ToolRetrieval(top_n=8, always=["find_order"]))

    The rules apply as ever: what they hide is not found, and a call that they refuse is refused. When the
    retriever fails, all tools are shown. An agent with no more than ``top_n`` tools shows them all.

    Only plain function tools are chosen from. Hosted tools, those of MCP servers, agents as tools and tools
    that are switched on by a function are always shown.

    Args:
        top_n: How many tools are chosen for an input; 1 to 1,000.
        retriever: What finds them.
        always: Names of tools that are shown besides, whatever the input.
        find_tools: Name of the tool with which the model asks for more; None offers none.
        timeout: Seconds a search may take; after that all tools are shown.
        index_timeout: Seconds the first use may take for reading all the tools.
        provider_search: Leave the search to OpenAI: every tool but ``always`` is sent as one to be loaded
            later, next to the SDK's ``ToolSearchTool``. Only the Responses API takes that, and only some of
            its models; ``retriever`` and ``top_n`` are then not used.

    Raises:
        InvalidOptionError: E75, one of these has a value it cannot have.
    """

    top_n: int = attrs.field(default=8, converter=_top_n)
    retriever: Retriever = attrs.field(factory=BM25Retriever, converter=_retriever, kw_only=True)
    always: Sequence[str] = attrs.field(default=(), converter=_names, kw_only=True)
    find_tools: str | None = attrs.field(default="find_tools", converter=_find_tools, kw_only=True)
    timeout: float = attrs.field(default=5.0, validator=_is_positive, kw_only=True)
    index_timeout: float = attrs.field(default=120.0, validator=_is_positive, kw_only=True)
    provider_search: bool = attrs.field(default=False, converter=_switch, kw_only=True)

    @property
    def most_shown(self) -> int:
        """How many retrieved tools a run may have in view."""
        return self.top_n * GROWTH


def checked_retrieval(value: object) -> ToolRetrieval | None:
    """Return the ``tool_retrieval`` option of an agent; E75 if it is none."""
    if value is None or isinstance(value, ToolRetrieval):
        return value
    raise InvalidOptionError(
        option="tool_retrieval", reason=f"must be a ToolRetrieval or None, not {value!r}"
    )
