"""Explains why a tool or a call is allowed or denied."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from kantan_agents.core.context import Context
from kantan_agents.core.interception import tool_of
from kantan_agents.errors import InvalidOptionError, KantanAgentsError, ToolInputError
from kantan_agents.tool_rules import (
    EXPLICIT,
    Decision,
    RuleLayers,
    ToolFacts,
    ToolRules,
    ToolRulesMode,
    decide_call,
    decide_tool,
    needs_arguments,
    parse_arguments,
)
from kantan_agents.tool_rules.full_shells import remark_on_entry
from kantan_agents.tool_rules.globs import literal_beginning
from kantan_agents.tool_rules.origins import SERVER_PREFIX
from kantan_agents.tools.meanings_of_names import reading_of_unknown
from kantan_agents.tools.providers.entry_points import ToolProvider
from kantan_agents.tools.providers.providers import (
    AVAILABLE,
    ProviderChoice,
    choose_providers,
    explicit_rules,
    provider_layers,
)
from kantan_agents.tools.server_names import Surroundings, names_in_rules


@attrs.frozen
class Explanation:
    """A decision of the tool rules and its origin; ``str()`` formats it as text.

    Attributes:
        tool: Name of the tool.
        allowed: Whether it may be used, or called with the arguments given.
        rule: The deciding rule, such as ``"deny: fs.*"`` or ``"params: search.query.maxLength"``.
        layer: The layer that decides: ``"base"``, ``"provider NAME"``, ``"explicit"`` or one of the limits,
            ``"definition"`` (a subagent file), ``"delegation"`` and ``"delegation: ..."``; None if no rule
            concerns the tool.
        error: The error of a denied call; None if it is allowed.
        merged: The merged rules of all layers for this tool, in the public dict shape, without the limits.
        layers: The rules for this tool of each layer, in merge order, then of each limit.
        unknown: What the answer does not know, such as the tools of an MCP server that has not been listed;
            None if it is certain. If the unknown facts could turn a permission into a denial, ``allowed`` is
            False.
        tools: The explanation of each tool, if several are meant: the tools of a server, or of several
            servers that use the same name. ``allowed`` is True only if all of them are.
        remarks: The entries of ``allow`` about the tool that permit any program, such as ``Bash(git:*)``,
            each with an example.
    """

    tool: str
    allowed: bool
    rule: str
    layer: str | None
    error: KantanAgentsError | None
    merged: dict[str, Any]
    layers: dict[str, dict[str, Any]]
    unknown: str | None = None
    tools: tuple[Explanation, ...] = ()
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        by = f", in {self.layer}" if self.layer else ""
        lines = [
            _line(f"{self.tool}: {self._verdict}"),
            f"  rule: {_line(self.rule + by)}",
        ]
        if self.error is not None:
            lines.append(f"  error: {_line(str(self.error))}")
        if isinstance(self.error, ToolInputError):
            lines.append(f"  arguments: {_line(self.error.reason)}")
        if self.unknown is not None:
            lines.append(f"  unknown: {_line(self.unknown)}")
        lines += [f"  tool {_line(f'{one.tool}: {one._verdict}')}" for one in self.tools]
        lines += [f"  {_line(name)}: {_shown(rules)}" for name, rules in self.layers.items()]
        lines.append(f"  merged: {_shown(self.merged)}")
        lines += [f"  remark: {_line(remark)}" for remark in self.remarks]
        return "\n".join(lines)

    @property
    def _verdict(self) -> str:
        return "allowed" if self.allowed else "denied"


def explain(
    tool: Any,
    arguments: Mapping[str, Any] | str | None = None,
    *,
    context: Context | None = None,
    tool_rules: ToolRulesMode | Mapping[str, Any] | None = None,
    tool_providers: ProviderChoice = AVAILABLE,
) -> Explanation:
    """Explain whether a tool may be used or called, and which rule of which layer decides.

    Args:
        tool: A tool name or a tool. A tool also provides its other names and its parameters. A name may
            mean an MCP server's tool; only ``Agent.explain_tool`` knows the servers.
        arguments: Arguments of a call, as a mapping or as JSON; without them, the answer is whether the tool
            may be used at all.
        context: A context; its ``tool_rules`` are the explicit rules.
        tool_rules: Explicit rules or a mode; used instead of the context's.
        tool_providers: The providers whose rules are the layers below, as for ``Agent``.

    Raises:
        UnknownToolRulesModeError, ToolRulesTypeError, InvalidToolRulesError: E9, E18, E20, the rules are
            invalid. Invalid arguments (E10) are part of the explanation instead.
        ContextTypeError: E5, ``context`` is not a dict.
        ToolProviderInterfaceError, ToolProviderFailedError, UnknownToolProviderError: E7, E22, E24, as for
            ``Agent``.
    """
    rules = explicit_rules(context, tool_rules)
    providers = choose_providers(tool_providers)
    if isinstance(tool, str):
        tool = _provider_tool(tool, providers) or tool
    layers = provider_layers(providers).with_layer(EXPLICIT, rules)
    explained = explain_layers(layers, tool, arguments)
    denial = _denial_on_a_server(layers, tool) if isinstance(tool, str) and explained.allowed else None
    if denial is None:
        return explained
    return attrs.evolve(explained, unknown=f"if {tool!r} is a tool of an MCP server, {denial} denies it")


def explain_layers(
    layers: RuleLayers,
    tool: Any,
    arguments: Mapping[str, Any] | str | None = None,
    around: Surroundings | None = None,
) -> Explanation:
    """Like ``explain``, for given layers; ``around`` are the agent's other tools."""
    check_arguments(arguments)
    facts = _guess(tool) if isinstance(tool, str) else _listed(tool, around)
    return explain_facts(layers, facts, arguments)


def _denial_on_a_server(layers: RuleLayers, name: str) -> str | None:
    for _, entry in layers.denials():
        server = literal_beginning(tool_of(entry)).removeprefix(SERVER_PREFIX).partition("__")[0] or "any"
        if entry.startswith(SERVER_PREFIX):
            names = names_in_rules(server, name)
            rules = ToolRules.parse({"deny": [entry]})
            if rules.denying(names) is not None or rules.denied_calls(names):
                return f"deny: {entry}"
    return None


def _guess(name: str) -> ToolFacts:
    reading = reading_of_unknown(name)
    return ToolFacts((name,), guessed=True) if reading is None else reading.facts


def _listed(tool: Any, around: Surroundings | None) -> ToolFacts:
    # Imported here, as below, so that a name can be explained without the SDK.
    from kantan_agents.tools.coerce import coerce_tool
    from kantan_agents.tools.facts import facts_of_listed

    return facts_of_listed(coerce_tool(tool), around)


def check_arguments(arguments: Any) -> None:
    """Raise E75 unless ``arguments`` is a mapping, JSON or None."""
    if arguments is not None and not isinstance(arguments, (str, Mapping)):
        reason = f"must be a mapping or JSON text, not {type(arguments).__name__}"
        raise InvalidOptionError(option="arguments", reason=reason)


def explain_facts(
    layers: RuleLayers, facts: ToolFacts, arguments: Mapping[str, Any] | str | None
) -> Explanation:
    """Explain a decision about a tool, see ``explain``."""
    decision = _decided(layers, facts, arguments)
    merged = layers.rules.about(facts.names)
    remarks = map(remark_on_entry, merged.get("allow") or ())
    return Explanation(
        tool=facts.name,
        allowed=decision.allowed,
        rule=decision.rule,
        layer=_deciding(layers, decision, facts),
        error=decision.error,
        merged=merged,
        layers=dict(layers.about(facts.names)),
        remarks=tuple(filter(None, remarks)),
    )


def _decided(layers: RuleLayers, facts: ToolFacts, arguments: Mapping[str, Any] | str | None) -> Decision:
    decision = _decision(layers.rules, facts, arguments)
    for name, rules in layers.limits if decision.allowed else ():
        narrowed = attrs.evolve(_decision(rules, facts, arguments), limit=name)
        if not narrowed.allowed:
            return narrowed
        if decision.key is None and narrowed.key is not None:
            decision = narrowed  # no layer concerns the tool, but this limit names it
    return decision


def _provider_tool(name: str, providers: Iterable[ToolProvider]) -> Any:
    tools = [tool for provider in providers for tool in provider.tools]
    if not tools:
        return None
    from kantan_agents.tools.facts import facts_of

    exact = (tool for tool in tools if tool.name == name)
    return next(exact, None) or next((tool for tool in tools if name in facts_of(tool).names), None)


def _decision(rules: ToolRules, facts: ToolFacts, arguments: Mapping[str, Any] | str | None) -> Decision:
    """Like the guard, parse arguments only if a rule concerns them."""
    decision = decide_tool(rules, facts)
    if arguments is None or not decision.allowed or not needs_arguments(rules, facts):
        return decision
    try:
        if isinstance(arguments, str):
            arguments = parse_arguments(facts.name, arguments)
        return decide_call(rules, facts.for_arguments(arguments), arguments)
    except ToolInputError as error:
        return Decision(allowed=False, key="params", entry=facts.name, error=error)


def _deciding(layers: RuleLayers, decision: Decision, facts: ToolFacts) -> str | None:
    deciding = layers.deciding(decision)
    if isinstance(decision.error, ToolInputError) and decision.limit is None:
        # No single entry decides: no rule can be applied to these arguments.
        deciding = tuple(name for name, rules in layers.layers if _is_about_arguments(rules, facts))
    return deciding[-1] if deciding else None


def _is_about_arguments(rules: ToolRules, facts: ToolFacts) -> bool:
    calls = rules.denied_calls(facts.names) or rules.allowed_calls(facts.names, facts.origin)
    return bool(calls) or rules.checks(facts.names) is not None


def _line(text: str) -> str:
    return " ".join(text.split())


def _shown(rules: Mapping[str, Any]) -> str:
    # An empty allow list is shown: allow has entries, but none for this tool.
    said = {key: value for key, value in rules.items() if value or (key == "allow" and value is not None)}
    return json.dumps(said, ensure_ascii=False) if said else "says nothing about it"
