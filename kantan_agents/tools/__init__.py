"""Tools: converting them for the SDK, guarding their calls, listing them, and loading tool providers."""

from kantan_agents.support.provider_choice import use_tool_providers
from kantan_agents.tools.coerce import agent_as_tool, coerce_tool, coerce_tools, for_other_agent
from kantan_agents.tools.explain import Explanation, explain, explain_layers
from kantan_agents.tools.explain_named import explain_named
from kantan_agents.tools.facts import (
    check_declaration,
    declare_names,
    facts_of,
    facts_of_listed,
    rule_parameter,
    servers_of,
    surround,
)
from kantan_agents.tools.guards.executors import guard
from kantan_agents.tools.guards.functions import GuardedInvoker, guard_function, is_switched_on
from kantan_agents.tools.guards.guard import Guard, Rulebook
from kantan_agents.tools.guards.hosted import refuse_hosted_calls
from kantan_agents.tools.guards.violations import (
    RuleViolation,
    RuleViolationPolicy,
    checked_policy,
    forget_violation,
    pending_violation,
)
from kantan_agents.tools.in_force import NO_LAYERS, Ceiling, rules_in_force, rules_of_run
from kantan_agents.tools.listing import (
    answer_missing,
    hidden_tool_called,
    list_none,
    list_tools,
    resolve_each_turn,
    show_each_turn,
)
from kantan_agents.tools.offers import Offers
from kantan_agents.tools.origins import origins_text, tool_origins
from kantan_agents.tools.providers.collected import loaded_providers, refresh_tool_providers
from kantan_agents.tools.providers.providers import (
    AVAILABLE,
    ProviderChoice,
    choose_providers,
    get_effective_tool_rules,
    get_provider_tool_rules,
    list_provider_tools,
    provider_layers,
    providers_of_agent,
    tools_with_providers,
)
from kantan_agents.tools.server_names import Surroundings, server_of

__all__ = [
    "AVAILABLE",
    "NO_LAYERS",
    "Ceiling",
    "Explanation",
    "Guard",
    "GuardedInvoker",
    "Offers",
    "ProviderChoice",
    "RuleViolation",
    "RuleViolationPolicy",
    "Rulebook",
    "Surroundings",
    "agent_as_tool",
    "answer_missing",
    "check_declaration",
    "checked_policy",
    "choose_providers",
    "coerce_tool",
    "coerce_tools",
    "declare_names",
    "explain",
    "explain_layers",
    "explain_named",
    "facts_of",
    "facts_of_listed",
    "for_other_agent",
    "forget_violation",
    "get_effective_tool_rules",
    "get_provider_tool_rules",
    "guard",
    "guard_function",
    "hidden_tool_called",
    "is_switched_on",
    "list_none",
    "list_provider_tools",
    "list_tools",
    "loaded_providers",
    "origins_text",
    "pending_violation",
    "provider_layers",
    "providers_of_agent",
    "refresh_tool_providers",
    "refuse_hosted_calls",
    "resolve_each_turn",
    "rule_parameter",
    "rules_in_force",
    "rules_of_run",
    "server_of",
    "servers_of",
    "show_each_turn",
    "surround",
    "tool_origins",
    "tools_with_providers",
    "use_tool_providers",
]
