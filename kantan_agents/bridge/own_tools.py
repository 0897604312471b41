"""The tools an Agent was given, and when each of them is guarded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from threading import Lock
from types import MethodType
from typing import Any, cast

import attrs
from agents import FunctionTool, Tool

from kantan_agents.bridge.guarded_agent import guard_nested
from kantan_agents.tools import GuardedInvoker, Rulebook, check_declaration, guard, guard_function

_lock = Lock()  # one for all: an agent can be copied, a lock cannot


class OwnTools:
    """The tools of one Agent, in their order, as they were when it was made.

    Those that the SDK has to find on its agent are guarded at once. The others, plain function tools, are
    held back: copied and guarded when somebody asks for them, as services make agents of many tools for each
    request, and not all of them run.

    Args:
        tools: The tools, as they were given.
        book: The Agent.
        holds: Whether any may be held back.

    Raises:
        InvalidOptionError: E75, a declaration for the rules does not fit its tool.
    """

    __slots__ = ("_book", "_fields", "_given", "_inside", "_made", "_ready")

    def __init__(self, tools: Sequence[Tool], book: Rulebook, *, holds: bool = True) -> None:
        self._given = tuple(tools)
        self._book = book
        self._inside: list[Tool] = []
        self._ready: dict[int, Tool] = {}
        self._fields: dict[int, dict[str, Any]] = {}
        self._made: _Made | None = None
        for place, tool in enumerate(self._given):
            fields = _what_waits(tool) if holds else None
            if fields is not None:
                self._fields[place] = fields
                continue
            guarded = self._ready[place] = guard(tool, book)
            if not holds or not can_be_held(tool):
                guard_nested(guarded)
                self._inside.append(guarded)

    @property
    def inside(self) -> list[Tool]:
        """Those that stand on the SDK's agent, guarded."""
        return list(self._inside)

    @property
    def held(self) -> Sequence[FunctionTool]:
        """Those that do not, guarded."""
        return self._guarded.held

    @property
    def holds_any(self) -> bool:
        """Whether any are held back."""
        return len(self._inside) < len(self._given)

    @property
    def switched_on(self) -> list[Tool]:
        """Those held that have not been disabled, nor the user's own tools behind them."""
        made = self._guarded
        pairs = zip(made.held, made.behind, strict=True)
        return [tool for tool, own in pairs if tool.is_enabled and own.is_enabled]

    def has(self, tool: Tool) -> bool:
        """Whether this very object is one of them, guarded."""
        return self._place(tool) is not None

    def in_order(self, tools: Sequence[Tool], *, others_first: bool) -> list[Tool]:
        """Return tools in the order of these, with those that are none of them before or after."""
        other = -1 if others_first else len(self._given)
        places = [(other if (place := self._place(tool)) is None else place) for tool in tools]
        return [tools[index] for index in sorted(range(len(tools)), key=places.__getitem__)]

    def as_given(self, tool: Tool) -> Tool:
        """Return a tool as it was given, without our guard, if it is one of them."""
        place = self._place(tool)
        return tool if place is None else self._given[place]

    def _place(self, tool: Tool) -> int | None:
        made = self._guarded
        place = made.places.get(id(tool))
        # In a deep copy the ids are those of other objects.
        return place if place is not None and made.tools[place] is tool else None

    @property
    def _guarded(self) -> _Made:
        fields, made = self._fields, self._made  # in this order: the fields go when the rest is there
        if made is None:
            made = self._make(fields)
            with _lock:  # two copies of one tool, and the SDK would take them for two tools
                made = self._made = self._made or made
            self._fields = {}
        return made

    def _make(self, fields: Mapping[int, dict[str, Any]]) -> _Made:
        tools = [
            guard_function(cast("FunctionTool", tool), self._book, fields[place])
            if place in fields
            else self._ready[place]
            for place, tool in enumerate(self._given)
        ]
        inside = {id(tool) for tool in self._inside}
        held = [cast("FunctionTool", tool) for tool in tools if id(tool) not in inside]
        behind = [cast("GuardedInvoker", tool.on_invoke_tool).original for tool in held]
        return _Made(tools, {id(tool): place for place, tool in enumerate(tools)}, held, behind)


def can_be_held(tool: Tool) -> bool:
    """Whether the SDK never looks for this tool on the agent itself.

    It does for tools that are switched on and off by a callable, loaded late, called from programs, in
    a namespace, or agents in disguise; and for every kind that is not a plain function tool.
    """
    if type(tool) is not FunctionTool or not isinstance(tool.is_enabled, bool):
        return False
    fields = vars(tool)
    return all(fields.get(name) is None or fields[name] is False for name in _LOOKED_FOR)


_LOOKED_FOR = (
    "defer_loading",
    "allowed_callers",
    "_is_agent_tool",
    "_agent_instance",
    "_is_codex_tool",
    "_tool_namespace",
)
_values_of = itemgetter("is_enabled", "timeout_seconds", *_LOOKED_FOR)
_USUAL = (True, None, False, None, False, None, False, None)


def _what_waits(tool: Any) -> dict[str, Any] | None:
    """Return what a tool is now, if it can be held and be copied later; None if it has to be copied now.

    Nothing can be wrong with it then that the copying would bring to light. It is asked of each tool of each
    agent, so what cannot be told at a glance is not.

    Raises:
        InvalidOptionError: E75, a declaration for the rules does not fit it.
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
        or type(tool.on_invoke_tool) in _COPIED_AT_ONCE
    ):
        return None
    check_declaration(tool)
    return fields


# Guarded already, or bound anew to each copy.
_COPIED_AT_ONCE = (GuardedInvoker, MethodType)


@attrs.frozen(eq=False)
class _Made:
    tools: Sequence[Tool]  # kept, so that their ids stay theirs
    places: dict[int, int]
    held: Sequence[FunctionTool]
    behind: Sequence[FunctionTool]
