"""The tools an Agent was created with, guarded on first use."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from threading import Lock
from types import MethodType
from typing import Any, cast

import attrs
from agents import FunctionTool, Tool

from kantan_agents.agent.bridge.guarded_agent import guard_nested
from kantan_agents.tools.facts import check_declaration, facts_of_listed
from kantan_agents.tools.guards.executors import guard
from kantan_agents.tools.guards.functions import GuardedInvoker, guard_function
from kantan_agents.tools.guards.guard import Rulebook
from kantan_agents.tools.server_names import server_of

_lock = Lock()  # one for all: an agent can be copied, a lock cannot


class OwnTools:
    """The tools of one Agent, in order, unchanged since its creation.

    Plain function tools are held back until first use, because not every agent runs: with 100 tools, creation
    would take 12 times as long (``python -m benchmarks --only construct_100``).
    """

    def __init__(self, tools: Sequence[Tool], book: Rulebook, *, holds: bool = True) -> None:
        self._given = tuple(tools)
        self._book = book
        self._inside: list[Tool] = []
        self._ready: dict[int, Tool] = {}
        self._fields: dict[int, dict[str, Any]] = {}
        self._made: _GuardedTools | None = None
        for place, tool in enumerate(self._given):
            fields = _fields_if_held(tool) if holds else None
            if fields is not None:
                self._fields[place] = fields
                continue
            guarded = self._ready[place] = guard(_guarded_by_none(tool), book)
            if not holds or not can_be_held(tool):
                guard_nested(guarded)
                self._inside.append(guarded)
        self.holds_any = len(self._inside) < len(self._given)

    @property
    def inside(self) -> list[Tool]:
        """The guarded tools for the SDK agent's ``tools``."""
        return list(self._inside)

    @property
    def held(self) -> Sequence[FunctionTool]:
        """The guarded tools that are held back."""
        return self._guarded.held

    @property
    def switched_on(self) -> list[Tool]:
        """The enabled held tools, whose copy and original are both on."""
        made = self._guarded
        pairs = zip(made.held, made.behind, strict=True)
        return [tool for tool, own in pairs if tool.is_enabled and own.is_enabled]

    @property
    def names_of_held(self) -> frozenset[str]:
        """The held tools' names in rules, without MCP servers' tools."""
        return self._guarded.names_of_held

    @property
    def shown_names_of_held(self) -> frozenset[str]:
        """The names shown for the held tools."""
        return self._guarded.shown_names_of_held

    @property
    def served_held(self) -> Sequence[FunctionTool]:
        """The held tools that MCP servers offer."""
        return self._guarded.served_held

    def has(self, tool: Tool) -> bool:
        """Whether this object is one of the guarded tools."""
        return self._place(tool) is not None

    def in_order(self, tools: Sequence[Tool], *, others_first: bool) -> list[Tool]:
        """Return ``tools`` in the Agent's order, others before or after."""
        other = -1 if others_first else len(self._given)
        places = [(other if (place := self._place(tool)) is None else place) for tool in tools]
        return [tools[index] for index in sorted(range(len(tools)), key=places.__getitem__)]

    def as_given(self, tool: Tool) -> Tool:
        """Return the user's tool behind a guarded one; others unchanged."""
        place = self._place(tool)
        return tool if place is None else self._given[place]

    def _place(self, tool: Tool) -> int | None:
        made = self._guarded
        place = made.places.get(id(tool))
        # In a deep copy, the ids belong to other objects.
        return place if place is not None and made.tools[place] is tool else None

    @property
    def _guarded(self) -> _GuardedTools:
        fields, made = self._fields, self._made  # in this order: the fields are dropped after `_made` is set
        if made is None:
            made = self._make(fields)
            with _lock:  # to the SDK, two copies of one tool would be two tools
                made = self._made = self._made or made
            self._fields = {}
        return made

    def _make(self, fields: Mapping[int, dict[str, Any]]) -> _GuardedTools:
        tools = [
            guard_function(cast("FunctionTool", tool), self._book, fields[place])
            if place in fields
            else self._ready[place]
            for place, tool in enumerate(self._given)
        ]
        inside = {id(tool) for tool in self._inside}
        held = [cast("FunctionTool", tool) for tool in tools if id(tool) not in inside]
        behind = [cast("GuardedInvoker", tool.on_invoke_tool).original for tool in held]
        return _GuardedTools(tools, {id(tool): place for place, tool in enumerate(tools)}, held, behind)


def _guarded_by_none(tool: Tool) -> Tool:
    """Unwrap another agent's guarded tool, whose rules would be checked instead."""
    invoker = getattr(tool, "on_invoke_tool", None)
    if not isinstance(tool, FunctionTool) or type(invoker) is not GuardedInvoker:
        return tool
    own = copy.copy(invoker.original)
    own.needs_approval, own.is_enabled = tool.needs_approval, tool.is_enabled  # they may have changed since
    return own


def can_be_held(tool: Tool) -> bool:
    """Return whether the SDK never needs this tool on the agent itself."""
    if type(tool) is not FunctionTool or not isinstance(tool.is_enabled, bool):
        return False
    fields = vars(tool)
    return all(fields.get(name) is None or fields[name] is False for name in _SDK_FIELDS)


_SDK_FIELDS = (
    "defer_loading",
    "allowed_callers",
    "_is_agent_tool",
    "_agent_instance",
    "_is_codex_tool",
    "_tool_namespace",
)
_values_of = itemgetter("is_enabled", "timeout_seconds", *_SDK_FIELDS)
_USUAL = (True, None, False, None, False, None, False, None)


def _fields_if_held(tool: Any) -> dict[str, Any] | None:
    """Return a tool's fields for a later copy.

    None if a copy could fail: it happens now, so that the creation of the agent raises the error.
    """
    if type(tool) is not FunctionTool:
        return None
    fields = vars(tool).copy()
    schema = fields.get("params_json_schema")
    try:
        is_usual = fields["is_enabled"] is True and _values_of(fields) == _USUAL
    except KeyError:
        return None
    if (
        not is_usual
        or type(schema) is not dict
        or (schema.get("additionalProperties") is not False and tool.strict_json_schema)
        or type(tool.on_invoke_tool) in _COPIED_IMMEDIATELY
    ):
        return None
    check_declaration(tool)
    return fields


# Already guarded, or bound again to each copy.
_COPIED_IMMEDIATELY = (GuardedInvoker, MethodType)


@attrs.frozen(eq=False, slots=False)
class _GuardedTools:
    tools: Sequence[Tool]  # references, so that the ids in `places` stay valid
    places: dict[int, int]
    held: Sequence[FunctionTool]
    behind: Sequence[FunctionTool]

    @cached_property
    def names_of_held(self) -> frozenset[str]:
        local = (tool for tool in self.held if server_of(tool) is None)
        return frozenset(name for tool in local for name in facts_of_listed(tool).names)

    @cached_property
    def shown_names_of_held(self) -> frozenset[str]:
        return frozenset(tool.qualified_name for tool in self.held)

    @cached_property
    def served_held(self) -> Sequence[FunctionTool]:
        return [tool for tool in self.held if server_of(tool) is not None]
