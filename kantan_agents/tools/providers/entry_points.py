"""Loads the tool providers that installed distributions declare (spec 9.1, 9.4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import EntryPoint
from typing import Any

import attrs

from kantan_agents.errors import (
    InvalidToolRulesError,
    KantanAgentsError,
    ToolProviderFailedError,
    ToolProviderInterfaceError,
)
from kantan_agents.support.log import get_logger
from kantan_agents.tool_rules import ToolRules, ToolRulesMode, rules_of
from kantan_agents.tools.providers.choice import Declaration, declared_providers

logger = get_logger("kantan_agents.tools")


@attrs.frozen(eq=False)
class ToolProvider:
    """A loaded provider."""

    declared: Declaration
    tools: tuple[Any, ...]
    rules: ToolRules

    @property
    def name(self) -> str:
        """Name of its entry point."""
        return self.declared.name


@attrs.frozen(eq=False)
class ProviderFailure:
    """A provider that cannot be used: E7, E20 or E22."""

    declared: Declaration
    error: KantanAgentsError

    @property
    def name(self) -> str:
        """Name of its entry point."""
        return self.declared.name


@attrs.frozen(eq=False)
class Collected:
    """Installed providers, ordered by name; the process does not permit ``withheld`` ones."""

    providers: tuple[ToolProvider, ...] = ()
    failures: tuple[ProviderFailure, ...] = ()
    withheld: tuple[Declaration, ...] = ()

    @property
    def declared(self) -> tuple[Declaration, ...]:
        """All entry points."""
        loaded = [provider.declared for provider in self.providers]
        return (*loaded, *(failure.declared for failure in self.failures), *self.withheld)


def collect(permitted: Collection[str] | None = None) -> Collected:
    """Load the permitted providers; failures are logged."""
    outcomes: list[ToolProvider | ProviderFailure] = []
    withheld: list[Declaration] = []
    pairs = declared_providers()
    for declaration, entry in pairs:
        if permitted is None or declaration.name in permitted:
            outcomes.append(_outcome(declaration, entry))
        else:
            withheld.append(declaration)
    installed = {declaration.name for declaration, _ in pairs}
    missing = sorted(set(permitted or ()) - installed)
    if missing:  # a misspelled name permits nothing
        known = ", ".join(sorted(installed)) or "none"
        message = f"permitted tool providers are not installed: {', '.join(missing)} (installed: {known})"
        logger.warning(message, providers=missing)
    return Collected(
        tuple(outcome for outcome in outcomes if isinstance(outcome, ToolProvider)),
        tuple(outcome for outcome in outcomes if isinstance(outcome, ProviderFailure)),
        tuple(withheld),
    )


def _outcome(declared: Declaration, entry: EntryPoint) -> ToolProvider | ProviderFailure:
    try:
        return _load(declared, entry)
    except KantanAgentsError as error:
        logger.warning(
            "tool provider left out",
            provider=declared.name,
            distribution=str(declared),
            code=error.code,
            error=str(error),
        )
        return ProviderFailure(declared, error)


def _load(declared: Declaration, entry: EntryPoint) -> ToolProvider:
    # Imported here, so that rules can be read without the SDK.
    from kantan_agents.tools.coerce import coerce_tools
    from kantan_agents.tools.facts import facts_of

    try:
        provider = entry.load()
        if isinstance(provider, type) or (callable(provider) and not _has_interface(provider)):
            provider = provider()
        if not _has_interface(provider):
            raise ToolProviderInterfaceError(provider=declared.name, distribution=str(declared))  # noqa: TRY301
        tools = tuple(coerce_tools(provider.list_tools()))
        for tool in tools:
            facts_of(tool)  # reports a wrong declaration as the provider's failure, not in each Agent
        return ToolProvider(declared, tools, _rules(provider.get_tool_rules()))
    except InvalidToolRulesError as error:
        where = f"provider {declared.name} of {declared}"
        raise InvalidToolRulesError(problems=[f"{where}: {problem}" for problem in error.problems]) from error
    except ToolProviderInterfaceError:
        raise
    except (Exception, SystemExit) as error:  # third-party code may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise ToolProviderFailedError(
            provider=declared.name, distribution=str(declared), reason=reason
        ) from error


def _has_interface(provider: Any) -> bool:
    return callable(getattr(provider, "list_tools", None)) and callable(
        getattr(provider, "get_tool_rules", None)
    )


def _rules(rules: Any) -> ToolRules:
    if rules is None:
        return ToolRules()
    if not isinstance(rules, (Mapping, ToolRulesMode)):
        raise InvalidToolRulesError(
            problems=[f"the rules must be a dict with allow, deny and params, not a {type(rules).__name__}"]
        )
    return ToolRules.parse(rules_of(rules))
