"""Names of MCP servers' tools, without collisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import agents
from agents import FunctionTool, Handoff, default_tool_error_function
from agents.mcp import MCPUtil

from kantan_agents.tools.mcp.served import Served

# (index of the server, index of its tool), as the SDK counts them
Place = tuple[int, int]


def named_tools(
    agent: Any,
    served: Sequence[Served],
    *,
    local: Collection[str],
    reserved: Collection[str],
    may_be_used: Callable[[Iterable[FunctionTool]], list[bool]],
    left_out: Callable[[Iterable[str]], None],
) -> tuple[list[FunctionTool], frozenset[str]]:
    """Return tools with unique names, and the names that several servers had.

    A tool has its server's name for it, or the SDK's prefixed name if several servers use it, unless the
    rules hide all but one. Tools of a server that is away count too, so that names do not change meanwhile.
    No prefixed name may be in ``reserved``.
    """
    naming = _Naming(agent, served)
    if agent.mcp_config.get("include_server_in_tool_names", False):
        names = naming.prefixed(naming.places(), reserved)
        tools = [naming.tool(place, names[place]) for place in naming.places(present=True)]
        left_out(tool.name for tool in tools if tool.name in local)
        return [tool for tool in tools if tool.name not in local], frozenset()
    left_out(naming.name(place) for place in naming.places(present=True) if naming.name(place) in local)
    places = [place for place in naming.places() if naming.name(place) not in local]
    counts = Counter(map(naming.name, places))
    shared = frozenset(name for name, count in counts.items() if count > 1)
    if not shared:
        return [naming.tool(place) for place in places if not naming.is_away(place)], shared
    alike = [place for place in places if naming.name(place) in shared]
    names = naming.prefixed(alike, {*reserved, *local, *counts})
    made = {place: naming.tool(place, names.get(place)) for place in places}
    usable = [
        place for place, may in zip(alike, may_be_used([made[place] for place in alike]), strict=True) if may
    ]
    rivals = Counter(map(naming.name, usable))
    for place in usable:
        if rivals[naming.name(place)] == 1:
            made[place] = naming.tool(place)
    ambiguous = frozenset(name for name in shared if rivals[name] != 1)
    return [made[place] for place in places if not naming.is_away(place)], ambiguous


class _Naming:
    """The tools by index, and the SDK's functions that name and make them."""

    def __init__(self, agent: Any, served: Sequence[Served]) -> None:
        self._agent = agent
        self._served = served
        self._failure_error_function = agent.mcp_config.get(
            "failure_error_function", default_tool_error_function
        )

    def places(self, *, present: bool = False) -> list[Place]:
        return [
            (number, place)
            for number, one in enumerate(self._served)
            if not (present and one.is_away)
            for place in range(len(one.tools))
        ]

    def name(self, place: Place) -> str:
        return str(self._served[place[0]].tools[place[1]].name)

    def is_away(self, place: Place) -> bool:
        return self._served[place[0]].is_away

    def prefixed(self, places: Sequence[Place], reserved: Collection[str]) -> dict[Place, str]:
        batches: list[Any] = []
        order: list[Place] = []
        for number, one in enumerate(self._served):
            mine = [place for place in places if place[0] == number]
            order += mine
            batches.append((number, one.server, [one.tools[place[1]] for place in mine]))
        # Private, but rules, approvals and stored runs know the SDK's names.
        names = MCPUtil._build_prefixed_tool_name_overrides(batches, reserved_names=set(reserved))
        counts: Counter[int] = Counter()
        found: dict[Place, str] = {}
        for place in order:
            found[place] = names[(place[0], counts[place[0]])]
            counts[place[0]] += 1
        return found

    def tool(self, place: Place, name: str | None = None) -> FunctionTool:
        one = self._served[place[0]]
        made = MCPUtil.to_function_tool(
            one.tools[place[1]],
            one.server,  # type: ignore[arg-type]  # it has all attributes of the server
            self._agent.mcp_config.get("convert_schemas_to_strict", False),
            self._agent,
            failure_error_function=self._failure_error_function,
            tool_name_override=name,
        )
        # When a run is resumed, newer SDKs compare the server of an approved call.
        binding = getattr(made, "_mcp_tool_binding", None)
        if binding is not None:
            made._mcp_tool_binding = (*binding[:2], place[0])  # type: ignore[attr-defined]
        return made


def handoff_names(agent: Any) -> frozenset[str]:
    """Return handoffs' tool names."""
    return frozenset(
        target.tool_name if isinstance(target, Handoff) else Handoff.default_tool_name(target)
        for target in agent.handoffs
        if isinstance(target, (Handoff, agents.Agent))
    )
