"""Decides about a tool or a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import attrs

from kantan_agents.errors import KantanAgentsError, ToolNotAllowedError
from kantan_agents.tool_rules.calls import COMMAND, PATH, texts_to_match
from kantan_agents.tool_rules.names import EVERY
from kantan_agents.tool_rules.origins import Origin
from kantan_agents.tool_rules.parameters import Breach
from kantan_agents.tool_rules.rules import ToolRules


@attrs.frozen
class ToolFacts:
    """The facts about a tool that a decision needs.

    Attributes:
        names: All names of the tool; the first is the name that the model sees.
        schema: JSON Schema of its parameters. Empty if only names are known: then a value that a keyword
            cannot check passes.
        fold: Maps equivalent values of the parameter, such as two spellings of a name, to the same value.
        received: Returns each reading of the arguments that the tool's function receives, if known.
        kind: The kind of ``parameter``: ``"command"``, ``"path"`` or ``"domain"``.
        canonical: Returns the compared form of a path (relative to the root) or address (the host); None for
            a value that the tool rejects.
    """

    names: tuple[str, ...]
    parameter: str | None = None
    schema: Mapping[str, Any] = attrs.field(factory=dict, eq=False, repr=False)
    guessed: bool = False
    fold: Callable[[str], str] | None = attrs.field(default=None, eq=False, repr=False)
    received: Callable[[Mapping[str, Any]], list[dict[str, Any]]] | None = attrs.field(
        default=None, eq=False, repr=False
    )
    origin: Origin | None = attrs.field(default=None, eq=False, repr=False)
    kind: str = COMMAND
    canonical: Callable[[str], str | None] | None = attrs.field(default=None, eq=False, repr=False)
    roots: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name that the model sees."""
        return self.names[0]

    def texts(self, arguments: Mapping[str, Any]) -> list[str] | None:
        """Return the strings to match, None without any; a missing path is the tool's root."""
        if self.parameter is None:
            return None
        value = arguments.get(self.parameter)
        if self.canonical is None:
            return texts_to_match(value)
        given = texts_to_match("" if value is None and self.kind == PATH else value)
        texts = [self.canonical(text) for text in given or ()]
        return None if not texts or None in texts else cast("list[str]", texts)

    def for_arguments(self, arguments: Mapping[str, Any]) -> ToolFacts:
        """Return the facts with ``parameter`` taken from a call, if only the name is known."""
        if not self.guessed:
            return self
        return attrs.evolve(
            self, parameter=next((k for k, v in arguments.items() if isinstance(v, str)), None)
        )


@attrs.frozen
class Decision:
    """Whether a tool, or one call of it, may run.

    Attributes:
        allowed: Whether it may run.
        key: ``"allow"``, ``"deny"`` or ``"params"``; None if no rule matches.
        entry: The deciding entry of that key: a name, a pattern, or ``tool.parameter.keyword``. None if
            ``allow`` has no entry for the tool and therefore denies it.
        error: The error of a denied call.
        awaited: Whether other tasks may have run during the decision.
        limit: The deciding limit; None if the layers decide.
    """

    allowed: bool
    key: str | None = None
    entry: str | None = None
    error: KantanAgentsError | None = None
    awaited: bool = attrs.field(default=False, eq=False, repr=False)
    limit: str | None = None

    @property
    def rule(self) -> str:
        """The deciding rule as a string."""
        if self.key is None:
            return "no rule is about it"
        return f"{self.key}: {self.entry}" if self.entry is not None else f"{self.key} has no entry for it"


def schema_of(parameter: str | None) -> dict[str, Any]:
    """Return the schema of a tool that declares none."""
    return {"type": "object"} if parameter is None else {"type": "object", "properties": {parameter: {}}}


_MICROSECONDS_AT_ONCE = 2500
_UNRULED = Decision(allowed=True)


def decide_tool(rules: ToolRules, tool: ToolFacts) -> Decision:
    """Decide whether a tool may be used at all; ``Tool(param pattern)`` entries in allow suffice."""
    denied = rules.denying(tool.names)
    if denied is not None:
        return _refused(tool, "deny", denied)
    if rules.allow is None:
        return _UNRULED
    if rules.allow == EVERY:
        return Decision(allowed=True, key="allow", entry=EVERY)
    entry = rules.allowing(tool.names, tool.origin)
    if entry is None:
        calls = rules.allowed_calls(tool.names, tool.origin)
        entry = calls[0].entry if calls else None
    if entry is None:
        return _refused(tool, "allow", None)
    return Decision(allowed=True, key="allow", entry=entry)


def needs_arguments(rules: ToolRules, tool: ToolFacts) -> bool:
    """Return whether the decision about a permitted tool's call depends on its arguments."""
    return (
        rules.checks(tool.names) is not None
        or bool(rules.denied_calls(tool.names))
        or _only_some_calls(rules, tool)
    )


def decide_call(rules: ToolRules, tool: ToolFacts, arguments: Mapping[str, Any]) -> Decision:
    """Decide about a call: by deny first, then allow, then params.

    Raises:
        ToolInputError: E10, the arguments contain invalid Unicode.
    """
    decision = decide_written(rules, tool, arguments)
    for received in received_arguments(rules, tool, arguments) if decision.allowed else ():
        breach = decide_received(rules, tool, received, arguments)
        if breach is not None:
            return breach
    return decision


def decide_written(rules: ToolRules, tool: ToolFacts, arguments: Mapping[str, Any]) -> Decision:
    """Decide like ``decide_call``, but ignore what the function receives."""
    decision = decide_tool(rules, tool)
    if decision.allowed:
        decision = _decide_entries(rules, tool, arguments, decision)
    checks = rules.checks(tool.names) if decision.allowed else None
    if checks is None:
        return decision
    if tool.received is None:
        arguments = checks.with_defaults(tool.schema, arguments)
    breach = checks.breach(tool.name, arguments) or checks.undeclared(tool.name, tool.schema, arguments)
    return decision if breach is None else _broken(breach)


def received_arguments(
    rules: ToolRules, tool: ToolFacts, arguments: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the arguments that the function receives, if parameter rules concern them."""
    if tool.received is None or rules.checks(tool.names) is None:
        return []
    return tool.received(arguments)


def decide_received(
    rules: ToolRules, tool: ToolFacts, received: Mapping[str, Any], written: Mapping[str, Any]
) -> Decision | None:
    """Return the denial of received arguments that break a parameter rule; E10 for an unreadable value."""
    checks = rules.checks(tool.names)
    if checks is None:
        return None
    breach = checks.unchecked(tool.name, tool.schema, received, written)
    breach = breach or checks.breach(tool.name, received)
    return None if breach is None else _broken(breach)


def _broken(breach: Breach) -> Decision:
    return Decision(allowed=False, key="params", entry=breach.entry, error=breach.error)


def _decide_entries(
    rules: ToolRules, tool: ToolFacts, arguments: Mapping[str, Any], decision: Decision
) -> Decision:
    denied, only_some = rules.denied_calls(tool.names), _only_some_calls(rules, tool)
    texts = tool.texts(arguments) if denied or only_some else None
    for call in denied:
        # A call without a string to match may be a denied one.
        if texts is None or call.denies(texts, tool.fold, tool.kind, tool.roots):
            return _refused(tool, "deny", call.entry)
    if only_some:
        for call in rules.allowed_calls(tool.names, tool.origin):
            if texts is not None and call.grants(texts, tool.fold, tool.kind, tool.roots):
                return Decision(allowed=True, key="allow", entry=call.entry)
        return _refused(tool, "allow", None)
    return decision


def is_quick(rules: ToolRules, tool: ToolFacts, arguments: Mapping[str, Any]) -> bool:
    """Return whether ``decide_call`` blocks the event loop for a few milliseconds at most."""
    calls = len(rules.denied_calls(tool.names)) + len(rules.allowed_calls(tool.names, tool.origin))
    texts = texts_to_match(arguments.get(tool.parameter)) if calls and tool.parameter is not None else None
    length = sum(len(text) + 1 for text in texts or ())
    # All readings of a command take a microsecond per character; a match takes a fifth of that, at least a
    # microsecond.
    if length + calls * (1 + length / 5) > _MICROSECONDS_AT_ONCE:
        return False
    checks = rules.checks(tool.names)
    return checks is None or checks.is_quick(arguments)


def _only_some_calls(rules: ToolRules, tool: ToolFacts) -> bool:
    return isinstance(rules.allow, tuple) and rules.allowing(tool.names, tool.origin) is None


def _refused(tool: ToolFacts, key: str, entry: str | None) -> Decision:
    return Decision(allowed=False, key=key, entry=entry, error=ToolNotAllowedError(tool_name=tool.name))
