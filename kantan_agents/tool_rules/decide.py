"""The decision about one tool and one call: allowed or not, and by which entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from kantan_agents.errors import KantanAgentsError, ToolNotAllowedError
from kantan_agents.tool_rules.calls import looked_at
from kantan_agents.tool_rules.names import EVERY
from kantan_agents.tool_rules.rules import ToolRules


@attrs.frozen
class ToolFacts:
    """What a decision needs to know of a tool.

    Attributes:
        names: Every name it goes by, the one the model sees first.
        parameter: The parameter that ``Tool(param pattern)`` looks at, or None if it has none.
        schema: JSON Schema of its parameters.
        guessed: Whether nothing but its name is known.
        fold: Returns what two values of the parameter share that mean the same, such as two ways to write one
            name; None where a value means itself alone.
    """

    names: tuple[str, ...]
    parameter: str | None = None
    schema: Mapping[str, Any] = attrs.field(factory=dict, eq=False, repr=False)
    guessed: bool = False
    fold: Callable[[str], str] | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def name(self) -> str:
        """The name the model sees."""
        return self.names[0]

    def for_arguments(self, arguments: Mapping[str, Any]) -> ToolFacts:
        """Return the facts with the looked-at parameter, where only a call can tell which that is."""
        if not self.guessed:
            return self
        return attrs.evolve(
            self, parameter=next((k for k, v in arguments.items() if isinstance(v, str)), None)
        )


@attrs.frozen
class Decision:
    """Whether a tool, or one call of it, may run.

    Attributes:
        allowed: Whether it may.
        key: ``"allow"``, ``"deny"`` or ``"params"``; None where nothing rules it out.
        entry: The deciding entry of that key: a name, a pattern, or ``tool.parameter.keyword``. None
            where ``allow`` decides by not having one.
        error: What a call is refused with.
        awaited: Whether other tasks could run while it was made.
        limit: The limit that decides, None if the layers do.
    """

    allowed: bool
    key: str | None = None
    entry: str | None = None
    error: KantanAgentsError | None = None
    awaited: bool = attrs.field(default=False, eq=False, repr=False)
    limit: str | None = None

    @property
    def rule(self) -> str:
        """The deciding rule as text."""
        if self.key is None:
            return "no rule is about it"
        return f"{self.key}: {self.entry}" if self.entry is not None else f"{self.key} has no entry for it"


_MICROSECONDS_AT_ONCE = 2500
_UNRULED = Decision(allowed=True)


def decide_tool(rules: ToolRules, tool: ToolFacts) -> Decision:
    """Say whether a tool may be used at all; with ``Tool(param pattern)`` entries, in some calls."""
    denied = rules.denying(tool.names)
    if denied is not None:
        return _refused(tool, "deny", denied)
    if rules.allow is None:
        return _UNRULED
    if rules.allow == EVERY:
        return Decision(allowed=True, key="allow", entry=EVERY)
    entry = rules.allowing(tool.names)
    if entry is None:
        calls = rules.allowed_calls(tool.names)
        entry = calls[0].entry if calls else None
    if entry is None:
        return _refused(tool, "allow", None)
    return Decision(allowed=True, key="allow", entry=entry)


def needs_arguments(rules: ToolRules, tool: ToolFacts) -> bool:
    """Return whether a decision about a call of a permitted tool depends on its arguments."""
    return (
        rules.checks(tool.names) is not None
        or bool(rules.denied_calls(tool.names))
        or _only_some_calls(rules, tool)
    )


def decide_call(rules: ToolRules, tool: ToolFacts, arguments: Mapping[str, Any]) -> Decision:
    """Say whether a tool may be called with ``arguments``: first deny, then allow, then params.

    Raises:
        ToolInputError: E10, the arguments hold a text that is no Unicode.
    """
    decision = decide_tool(rules, tool)
    if decision.allowed:
        decision = _decide_entries(rules, tool, arguments, decision)
    checks = rules.checks(tool.names) if decision.allowed else None
    if checks is None:
        return decision
    breach = checks.breach(tool.name, arguments) or checks.undeclared(tool.name, tool.schema, arguments)
    if breach is None:
        return decision
    return Decision(allowed=False, key="params", entry=breach.entry, error=breach.error)


def _decide_entries(
    rules: ToolRules, tool: ToolFacts, arguments: Mapping[str, Any], decision: Decision
) -> Decision:
    """Go on from a decision about the tool to one about a call, by allow and deny alone."""
    texts = looked_at(arguments.get(tool.parameter)) if tool.parameter is not None else None
    for call in rules.denied_calls(tool.names):
        # A call that cannot be looked at might be the very one that is denied.
        if texts is None or call.denies(texts, tool.fold):
            return _refused(tool, "deny", call.entry)
    if _only_some_calls(rules, tool):
        for call in rules.allowed_calls(tool.names):
            if texts is not None and call.grants(texts, tool.fold):
                return Decision(allowed=True, key="allow", entry=call.entry)
        return _refused(tool, "allow", None)
    return decision


def is_quick(rules: ToolRules, tool: ToolFacts, arguments: Mapping[str, Any]) -> bool:
    """Return whether ``decide_call`` keeps an event loop for a few milliseconds at the very most."""
    calls = len(rules.denied_calls(tool.names)) + len(rules.allowed_calls(tool.names))
    texts = looked_at(arguments.get(tool.parameter)) if calls and tool.parameter is not None else None
    length = sum(len(text) + 1 for text in texts or ())
    # Reading a command in all the ways a shell may mean it takes a microsecond a character, holding an
    # entry against it a tenth of that, and a microsecond at least.
    if length + calls * (1 + length / 10) > _MICROSECONDS_AT_ONCE:
        return False
    checks = rules.checks(tool.names)
    return checks is None or checks.is_quick(arguments)


def _only_some_calls(rules: ToolRules, tool: ToolFacts) -> bool:
    return isinstance(rules.allow, tuple) and rules.allowing(tool.names) is None


def _refused(tool: ToolFacts, key: str, entry: str | None) -> Decision:
    return Decision(allowed=False, key=key, entry=entry, error=ToolNotAllowedError(tool_name=tool.name))
