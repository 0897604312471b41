"""The options of tool retrieval."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from kantan_agents.errors import InvalidOptionError, UnknownRetrievedToolError
from kantan_agents.support.arguments import checked_int, checked_number
from kantan_agents.support.extras import require_extra
from kantan_agents.tools.retrieval.retrievers.bm25 import BM25Retriever
from kantan_agents.tools.retrieval.retrievers.embeddings import EmbeddingRetriever
from kantan_agents.tools.retrieval.retrievers.retriever import Retriever

GROWTH = 4
"""A run may show this many times ``top_n`` tools, in addition to those always shown."""


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
    """Shows the model only the tools that match the input; it may search for more (spec protocol 6).

        Agent("desk", "Help.", tools=thousands, tool_retrieval=ToolRetrieval(top_n=8, always=["find_order"]))

    Tool rules still apply: hidden tools are not found and take no slot. An ``allow`` list need not name
    ``find_tools``; a ``deny`` list may. If the retriever fails or exceeds its time, all tools are shown, and
    the reason is logged once (E57). An agent with at most ``top_n`` tools shows them all, without
    ``find_tools``.

    Retrieval selects among plain function tools and tools of MCP servers. Hosted tools, agents as tools,
    ``Task`` and tools with a function as ``is_enabled`` are always shown. Each agent has its own option, even
    as the target of a handoff; subagents use ``task_tool(..., tool_retrieval=...)``.

    The query is the user's latest message, or the previous one if nothing matches. During a run, the
    selection grows by tools that ``find_tools`` finds, tools called in the latest 50 items of the input and
    the session, the tool in ``tool_choice``, and a hidden tool that the model calls (that call does not run).
    Tools are only appended, so prompt caches stay valid. Beyond four times ``top_n``, the oldest tools that
    were never called are dropped.

    MCP servers are listed in each turn; ``cache_tools_list=True`` lists each server once. With
    ``Runner.run(agent.sdk_agent, ...)``, the first turn shows only ``always`` and ``find_tools``. A run
    restored with ``RunState.from_json`` starts with all tools.

    Args:
        top_n: Number of tools to choose for an input; 1 to 1,000.
        retriever: Finds the tools.
        always: Names of tools that are shown for any input. For tools of MCP servers, these are names and
            patterns as in tool rules, such as ``mcp__files__read`` or ``mcp__files__*``; names that no server
            offers are logged.
        find_tools: Name of the tool with which the model searches for more tools; None for no such tool.
        timeout: Seconds that a search may take; after that, all tools are shown.
        index_timeout: Seconds that indexing all tools may take on first use.
        provider_search: Let OpenAI search: all tools except ``always`` are sent with deferred loading,
            together with the SDK's ``ToolSearchTool``. Only some models of the Responses API support this;
            ``retriever`` and ``top_n`` are then unused. All definitions are sent and billed.

    Raises:
        InvalidOptionError: E75, an option has an invalid value.
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
        """Largest number of retrieved tools that a run shows."""
        return self.top_n * GROWTH


def checked_retrieval(value: object) -> ToolRetrieval | None:
    """Return the option; E75 or E198."""
    if isinstance(value, ToolRetrieval):
        if not value.provider_search and isinstance(value.retriever, (BM25Retriever, EmbeddingRetriever)):
            require_extra("retrieval")
        return value
    if value is None:
        return None
    raise InvalidOptionError(
        option="tool_retrieval", reason=f"must be a ToolRetrieval or None, not {value!r}"
    )


def known_names(names: Iterable[str], tools: Sequence[str]) -> list[str]:
    """Return a list; E58 for unknown names."""
    names, known = list(names), frozenset(tools)
    problems = [_problem(name, tools) for name in names if name not in known]
    if problems:
        raise UnknownRetrievedToolError(problems=problems)
    return names


def own_names(names: Iterable[str], tools: Sequence[str]) -> list[str]:
    """Return the ``names`` in ``tools``; MCP servers may offer the others."""
    known = frozenset(tools)
    return [name for name in names if name in known]


def _problem(name: str, tools: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, tools, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "it must be one of its plain function tools"
    return f"{name!r:.100} ({hint})"
