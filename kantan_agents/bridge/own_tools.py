"""The tools an Agent was given, and when each of them is guarded."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any, TypeGuard, cast

import attrs
from agents import FunctionTool, Tool

from kantan_agents.bridge.guarded_agent import guard_nested
from kantan_agents.tools import GuardedInvoker, Rulebook, check_declaration, guard

_lock = Lock()  # one for all: an agent can be copied, a lock cannot


class OwnTools:
    """The tools of one Agent, in their order.

    Those that the SDK has to find on its agent are guarded at once. The others, plain function tools, are
    held back and guarded when somebody asks for them: services make agents of many tools for each request,
    and not all of them run.

    Args:
        tools: The tools, as they were given.
        book: The Agent.
        holds: Whether any may be held back.

    Raises:
        InvalidOptionError: E75, a declaration for the rules does not fit its tool.
    """

    __slots__ = ("_book", "_given", "_inside", "_made")

    def __init__(self, tools: Sequence[Tool], book: Rulebook, *, holds: bool = True) -> None:
        self._given = tuple(tools)
        self._book = book
        self._inside: dict[int, Tool] = {}
        self._made: _Made | None = None
        for place, tool in enumerate(tools):
            if holds and can_be_held(tool):
                check_declaration(tool)
                continue
            guarded = self._inside[place] = guard(tool, book)
            guard_nested(guarded)

    @property
    def inside(self) -> list[Tool]:
        """Those that stand on the SDK's agent, guarded."""
        return list(self._inside.values())

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
        made = self._made
        if made is None:
            with _lock:  # two copies of one tool, and the SDK would take them for two tools
                made = self._made
                if made is None:
                    made = self._made = self._make()
        return made

    def _make(self) -> _Made:
        inside = self._inside
        tools = [
            inside[place] if place in inside else guard(tool, self._book)
            for place, tool in enumerate(self._given)
        ]
        held = [cast("FunctionTool", tool) for place, tool in enumerate(tools) if place not in inside]
        behind = [cast("GuardedInvoker", tool.on_invoke_tool).original for tool in held]
        return _Made(tools, {id(tool): place for place, tool in enumerate(tools)}, held, behind)


def can_be_held(tool: Any) -> TypeGuard[FunctionTool]:
    """Whether the SDK never looks for this tool on the agent itself.

    It does for tools that are switched on and off by a callable, loaded late, called from programs, in
    a namespace, or agents in disguise; and for every kind that is not a plain function tool.
    """
    if type(tool) is not FunctionTool:
        return False
    fields = vars(tool)
    return (
        isinstance(fields.get("is_enabled"), bool)
        and not fields.get("defer_loading")
        and fields.get("allowed_callers") is None
        and not fields.get("_is_agent_tool")
        and fields.get("_agent_instance") is None
        and not fields.get("_is_codex_tool")
        and fields.get("_tool_namespace") is None
    )


@attrs.frozen(eq=False)
class _Made:
    tools: Sequence[Tool]  # kept, so that their ids stay theirs
    places: dict[int, int]
    held: Sequence[FunctionTool]
    behind: Sequence[FunctionTool]
