"""Tools and rules of providers (spec 9)."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal, cast

from kantan_agents.core.context import Context, check_context
from kantan_agents.errors import (
    DuplicateToolError,
    InvalidOptionError,
    KantanAgentsError,
    ToolProviderFailedError,
    ToolRulesTypeError,
    UnknownToolProviderError,
)
from kantan_agents.tool_rules import (
    BASE,
    NO_RULES,
    RuleLayers,
    ToolRules,
    ToolRulesMode,
    merge,
    provider_layer,
    rules_of,
)
from kantan_agents.tools.providers.cache import cache, collected_providers
from kantan_agents.tools.providers.choice import VARIABLE, permitted_providers
from kantan_agents.tools.providers.entry_points import Collected, ToolProvider

AVAILABLE = "available"
ALL = "all"

ProviderChoice = Literal["available", "all"] | Iterable[str] | None
"""``"available"``, ``"all"`` (strict), a list of entry-point names (strict), or None for no provider."""


def providers_of_agent(choice: ProviderChoice) -> tuple[ToolProvider, ...]:
    """Like ``choose_providers``, and log providers that are new since an earlier start."""
    providers = choose_providers(choice)
    if choice is not None and permitted_providers() != frozenset():
        cache.remember(collected_providers())
    return providers


def choose_providers(choice: ProviderChoice) -> tuple[ToolProvider, ...]:
    """Return the providers of an agent: never more than the process permits.

    With ``"available"``, failures to load are logged; ``"all"`` and names are strict. A provider without a
    method or with mistakes in its rules always raises, because its tools would be unrestricted.
    """
    if choice is None:
        return ()
    names = _checked(choice)
    collected = collected_providers()
    if isinstance(names, str):
        for failure in collected.failures:
            if names == ALL or not isinstance(failure.error, ToolProviderFailedError):
                raise _fresh(failure.error)
        return collected.providers
    return tuple(provider for name in names for provider in _named(name, collected))


def _checked(choice: Any) -> str | list[str]:
    if choice in (AVAILABLE, ALL):
        return cast("str", choice)
    if isinstance(choice, Iterable) and not isinstance(choice, (str, bytes)):
        names = list(choice)
        if all(isinstance(name, str) for name in names):
            return list(dict.fromkeys(names))
    raise InvalidOptionError(
        option="tool_providers",
        reason=f'must be "available", "all", a list of names or None, not {choice!r}',
    )


def _named(name: str, collected: Collected) -> list[ToolProvider]:
    for failure in collected.failures:
        if failure.name == name:
            raise _fresh(failure.error)
    found = [provider for provider in collected.providers if provider.name == name]
    if found:
        return found
    if any(declared.name == name for declared in collected.withheld):
        reason = f"names {name}, which use_tool_providers or {VARIABLE} does not permit in this process"
        raise InvalidOptionError(option="tool_providers", reason=reason)
    installed = {provider.name for provider in collected.providers}
    installed |= {declared.name for declared in collected.withheld}
    installed |= {failure.name for failure in collected.failures}
    raise UnknownToolProviderError(provider=name, installed=", ".join(sorted(installed)) or "none")


def _fresh(error: KantanAgentsError) -> KantanAgentsError:
    # A copy, because an error raised repeatedly collects the frames of all its tracebacks.
    again = copy.copy(error)
    again.__cause__ = error.__cause__
    return again


def provider_layers(providers: Iterable[ToolProvider]) -> RuleLayers:
    """Return base, then each provider's layer (spec 9.3).

    Agents with the same providers share one object and its caches.
    """
    return _layers(tuple(providers))


@lru_cache(maxsize=64)
def _layers(providers: tuple[ToolProvider, ...]) -> RuleLayers:
    rules: dict[str, ToolRules] = {}
    for provider in providers:  # two distributions may use the same name
        rules[provider.name] = merge(rules.get(provider.name, NO_RULES), provider.rules)
    layers = RuleLayers(((BASE, NO_RULES),))
    for name, recommended in rules.items():
        layers = layers.with_layer(provider_layer(name), recommended)
    return layers


def tools_with_providers(tools: Iterable[Any], providers: Collection[ToolProvider]) -> list[Any]:
    """The agent's own tool wins; E4 without a name, E23 for a tool that two providers have."""
    # Imported here, as below, so that rules can be read without the SDK.
    from kantan_agents.tools.coerce import coerce_tools

    own = coerce_tools(tools)
    taken = {_identity(tool) for tool in own} if providers else set()
    brought: dict[str, ToolProvider] = {}
    more: list[Any] = []
    for provider in providers:
        for tool in provider.tools:
            identity = _identity(tool)
            if identity in taken:
                continue
            first = brought.setdefault(identity, provider)
            if first is not provider:
                raise _duplicate(identity, first, provider)
            more.append(tool)
    return own + more


def _identity(tool: Any) -> str:
    from agents import HostedMCPTool

    from kantan_agents.tools.coerce import function_name
    from kantan_agents.tools.facts import facts_of

    function = function_name(tool)
    if function is not None:
        return function
    if isinstance(tool, HostedMCPTool):  # all have the same name; the label identifies the server
        return facts_of(tool).names[-1]
    return str(tool.name)


def _duplicate(tool_name: str, first: ToolProvider, second: ToolProvider) -> DuplicateToolError:
    names = [first.name, second.name]
    if first.name == second.name:
        names = [f"{provider.name} of {provider.declared}" for provider in (first, second)]
    return DuplicateToolError(tool_name=tool_name, first=names[0], second=names[1])


def list_provider_tools() -> list[str]:
    """Return the names of all tools of the installed providers (spec 9.5).

    Raises:
        ToolProviderInterfaceError: E7, a provider lacks a method.
        InvalidToolRulesError: E20, a provider's rules have mistakes.
    """
    return [tool.name for provider in choose_providers(AVAILABLE) for tool in provider.tools]


def get_provider_tool_rules() -> dict[str, Any]:
    """Return the rules of all installed providers, merged, in the public dict shape (spec 9.6).

    Raises:
        ToolProviderInterfaceError: E7, a provider lacks a method.
        InvalidToolRulesError: E20, a provider's rules have mistakes.

    Returns:
        ``{"allow": ..., "deny": ..., "params": {tool: {parameter: {keyword: value}}}}``.
    """
    return provider_layers(choose_providers(AVAILABLE)).rules.to_dict()


def get_effective_tool_rules(
    *,
    context: Context | None = None,
    tool_rules: ToolRulesMode | Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the providers' rules with explicit rules merged on top (spec 9.7).

    Args:
        context: A context; its ``tool_rules`` are the explicit rules.
        tool_rules: Explicit rules or a mode; used instead of the context's.

    Raises:
        ContextTypeError: E5, ``context`` is not a dict.
        UnknownToolRulesModeError: E9, ``tool_rules`` is an enum member, but not a mode.
        ToolRulesTypeError: E18, ``tool_rules`` is neither a mode nor a mapping, or the rules of
            ``context`` are not a dict.
        InvalidToolRulesError: E20, with every mistake of the rules and its path.
        ToolProviderInterfaceError: E7, a provider lacks a method.

    Returns:
        ``{"allow": ..., "deny": ..., "params": {tool: {parameter: {keyword: value}}}}``.
    """
    explicit = explicit_rules(context, tool_rules)
    return merge(provider_layers(choose_providers(AVAILABLE)).rules, explicit).to_dict()


def explicit_rules(context: object, tool_rules: object) -> ToolRules:
    """Prefer ``tool_rules`` to the context's (spec 9.7)."""
    if tool_rules is not None:
        return ToolRules.parse(rules_of(tool_rules))
    rules = check_context(context).get("tool_rules") if context is not None else None
    if rules is None:
        return NO_RULES
    if not isinstance(rules, dict):  # as in a run: a mode in a context is invalid
        raise ToolRulesTypeError(got=type(rules).__name__)
    return ToolRules.parse(rules)
