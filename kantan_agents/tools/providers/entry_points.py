"""Loads the tool providers that installed distributions declare (spec 9.1, 9.4).

A provider is an object with ``list_tools()`` and ``get_tool_rules()``, or a class or function that returns
one, declared as an entry point of the group ``kantan_agents.tools``.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
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
from kantan_agents.tools.coerce import coerce_tools
from kantan_agents.tools.facts import facts_of

logger = get_logger("kantan_agents.tools")

GROUP = "kantan_agents.tools"


@attrs.frozen
class Declaration:
    """The entry point of a provider. ``str()`` is name and version of the distribution.

    Attributes:
        name: Name of the entry point.
        distribution: Name of the distribution; None if its metadata cannot be read.
        version: Its version.
    """

    name: str
    distribution: str | None
    version: str | None

    @classmethod
    def of(cls, entry: EntryPoint) -> Declaration:
        """Read an entry point; damaged metadata of a distribution does not raise."""
        try:
            distribution, version = (entry.dist.name, entry.dist.version) if entry.dist else (None, None)
        except Exception:  # noqa: BLE001 - whatever the parser of a damaged file raises
            distribution = version = None
        return cls(entry.name, distribution, version)

    def __str__(self) -> str:
        if self.distribution is None:
            return "an unknown distribution"
        return f"{self.distribution} {self.version}"


@attrs.frozen(eq=False)
class ToolProvider:
    """A loaded provider.

    Attributes:
        declared: Its entry point.
        tools: Its tools, as SDK tools.
        rules: Its recommended rules for them.
    """

    declared: Declaration
    tools: tuple[Any, ...]
    rules: ToolRules

    @property
    def name(self) -> str:
        """Name of its entry point."""
        return self.declared.name


@attrs.frozen(eq=False)
class ProviderFailure:
    """A provider that cannot be used.

    Attributes:
        declared: Its entry point.
        error: The reason: E7, E20 or E22.
    """

    declared: Declaration
    error: KantanAgentsError

    @property
    def name(self) -> str:
        """Name of its entry point."""
        return self.declared.name


@attrs.frozen(eq=False)
class Collected:
    """All installed providers, ordered by name.

    Attributes:
        providers: The loaded providers.
        failures: The providers that could not be loaded.
    """

    providers: tuple[ToolProvider, ...] = ()
    failures: tuple[ProviderFailure, ...] = ()


def collect() -> Collected:
    """Load all providers; a failure is logged and does not affect the others."""
    declared = [(Declaration.of(entry), entry) for entry in entry_points(group=GROUP)]
    declared.sort(key=lambda pair: (pair[0].name, str(pair[0])))
    outcomes = [_outcome(declaration, entry) for declaration, entry in declared]
    return Collected(
        tuple(outcome for outcome in outcomes if isinstance(outcome, ToolProvider)),
        tuple(outcome for outcome in outcomes if isinstance(outcome, ProviderFailure)),
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
    try:
        provider = entry.load()
        if isinstance(provider, type) or (callable(provider) and not _has_interface(provider)):
            provider = provider()
        if not _has_interface(provider):
            raise ToolProviderInterfaceError(provider=declared.name, distribution=str(declared))  # noqa: TRY301
        tools = tuple(coerce_tools(provider.list_tools()))
        for tool in tools:
            facts_of(tool)  # a wrong declaration is reported as the provider's failure, not by each Agent
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
