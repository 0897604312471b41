"""The tools one run has in view."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from kantan_agents.tool_rules import RuleLayers


@attrs.define(eq=False)
class View:
    """What has been retrieved in one run of one agent, in the order in which it came.

    It only grows, at its end, so that what a provider has cached of a request stays good. Past ``most`` the
    oldest that were never called give way.

    Attributes:
        most: How many tools it holds.
        names: Names of the tools, oldest first.
        asked_for: Names that come into view with the next turn.
        calls: Names of the tools called so far.
        searched: The text the last search was made by; None before the first.
        shows_all: Whether retrieval has failed, or nothing is to be kept back.
        is_seeded: Whether what the conversation called before this run has been looked at.
        looked_under: The rules of the first search; None before it.
        is_short: Whether the first search found fewer than it should have.
        has_more: Whether there may be tools that are not shown.
    """

    most: int
    names: dict[str, None] = attrs.field(factory=dict)
    asked_for: list[str] = attrs.field(factory=list)
    calls: list[str] = attrs.field(factory=list)
    searched: str | None = None
    shows_all: bool = False
    is_seeded: bool = False
    looked_under: RuleLayers | None = None
    is_short: bool = False
    has_more: bool = True

    def add(self, names: Iterable[str]) -> None:
        """Put tools at the end of the view, or keep them in it."""
        wanted = dict.fromkeys(names)
        self.names.update(dict.fromkeys(name for name in wanted if name not in self.names))
        excess = len(self.names) - self.most
        if excess > 0:
            others = [name for name in self.names if name not in wanted]
            idle = [name for name in others if name not in self.calls]
            called = [name for name in others if name in self.calls]
            for name in (idle + called + list(wanted))[:excess]:
                del self.names[name]

    def promise(self, name: str) -> bool:
        """Take note that a tool is to come into view with the next turn; False if there is no room for it."""
        # One place stays free for a tool that `tool_choice` names.
        if name not in self.asked_for and len(self.asked_for) >= self.most - 1:
            return False
        if name not in self.asked_for:
            self.asked_for.append(name)
        return True

    def bring_in(self) -> None:
        """Put what has been asked for into view."""
        asked, self.asked_for = self.asked_for, []
        self.add(asked)
