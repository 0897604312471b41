"""The view of one run: the retrieved tools that its model is shown."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from kantan_agents.tool_rules import RuleLayers


@attrs.define(eq=False)
class ToolView:
    """The tools retrieved in one run of one agent, in order of retrieval.

    New tools are appended, so that the provider's cached prefix of the request stays valid. Beyond ``most``
    tools, the oldest ones that were never called are removed.

    Attributes:
        most: Largest number of tools.
        names: Names of the tools, oldest first.
        requested: Names to show from the next turn on.
        calls: Names of the tools called so far.
        last_query: The text of the last search; None before the first.
        shows_all: Whether all tools are shown, because retrieval has failed for example.
        is_seeded: Whether the calls of the earlier conversation have been added.
        searched_under: The rules of the first search; None before it.
        is_short: Whether the first search found fewer tools than it should have.
        has_more: Whether there may be tools that are not shown.
    """

    most: int
    names: dict[str, None] = attrs.field(factory=dict)
    requested: list[str] = attrs.field(factory=list)
    calls: list[str] = attrs.field(factory=list)
    last_query: str | None = None
    shows_all: bool = False
    is_seeded: bool = False
    searched_under: RuleLayers | None = None
    is_short: bool = False
    has_more: bool = True

    def add(self, names: Iterable[str]) -> None:
        """Append tools to the view; tools already in it stay in place."""
        wanted = dict.fromkeys(names)
        self.names.update(dict.fromkeys(name for name in wanted if name not in self.names))
        excess = len(self.names) - self.most
        if excess > 0:
            others = [name for name in self.names if name not in wanted]
            idle = [name for name in others if name not in self.calls]
            called = [name for name in others if name in self.calls]
            for name in (idle + called + list(wanted))[:excess]:
                del self.names[name]

    def request(self, name: str) -> bool:
        """Show a tool from the next turn on; return False if too many tools are requested already."""
        # One place is reserved for a tool that `tool_choice` names.
        if name not in self.requested and len(self.requested) >= self.most - 1:
            return False
        if name not in self.requested:
            self.requested.append(name)
        return True

    def show_requested(self) -> None:
        """Add the requested tools to the view."""
        requested, self.requested = self.requested, []
        self.add(requested)
