"""Tools that a middleware names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from threading import Lock
from typing import Any
from weakref import WeakSet

from kantan_agents.errors import InvalidOptionError, InvalidToolRulesError
from kantan_agents.tool_rules import ToolFacts, ToolRules
from kantan_agents.tool_rules.calls import is_call_pattern, parse_call_pattern
from kantan_agents.tool_rules.names import EVERY, NamePatterns

_lock = Lock()


class NamedTools:
    """Tool names, patterns and entries such as ``bash(git push:*)``, matched like ``deny``.

    An entry must match a tool of one of the middleware's agents, checked once before any call. E75 for an
    invalid entry.
    """

    def __init__(self, option: str, entries: Iterable[str]) -> None:
        self.option = option
        try:
            rules = ToolRules.parse({"deny": list(entries)})
        except InvalidToolRulesError as error:
            reason = "; ".join(problem.removeprefix("deny: ") for problem in error.problems)
            raise InvalidOptionError(option=option, reason=reason) from None
        names = (EVERY,) if rules.deny == EVERY else tuple(rules.deny or ())
        self.rules = rules
        self.entries: Mapping[str, ToolRules] = {name: ToolRules.parse({"deny": [name]}) for name in names}
        # A server may be called `files (old)`.
        self._unmatched = {
            name: NamePatterns({tool_of(name), name}) for name in names if tool_of(name) != EVERY
        }
        self._agents: WeakSet[Any] = WeakSet()

    @property
    def unmatched(self) -> tuple[str, ...]:
        """The entries without a match."""
        return tuple(self._unmatched) if self._unmatched else ()

    @property
    def agents(self) -> list[Any]:
        """The middleware's agents."""
        with _lock:
            return list(self._agents)

    def add_agent(self, agent: Any) -> None:
        """Record an agent with the middleware."""
        with suppress(TypeError), _lock:  # another class may not support weak references
            self._agents.add(agent)

    def match(self, names: Iterable[str]) -> None:
        """Record the names of existing tools."""
        for name in names:
            for entry, pattern in list(self._unmatched.items()):
                if pattern.covering(name):
                    self._unmatched.pop(entry, None)
            if not self._unmatched:
                return

    def concerns(self, tool: ToolFacts) -> bool:
        """Return whether an entry covers calls of the tool."""
        return self.rules.denying(tool.names) is not None or bool(self.rules.denied_calls(tool.names))

    def entries_about(self, tool: ToolFacts) -> Iterator[tuple[str, ToolRules]]:
        """Yield the entries for the tool as ``deny`` rules."""
        for entry, rules in self.entries.items():
            if rules.denying(tool.names) is not None or rules.denied_calls(tool.names):
                yield entry, rules


def tool_of(entry: str) -> str:
    """Return an entry's tool name or pattern."""
    return parse_call_pattern(entry).tool if is_call_pattern(entry) else entry
