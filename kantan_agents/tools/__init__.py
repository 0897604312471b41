"""Tools on their way to the SDK: made uniform, and guarded."""

from kantan_agents.tools.coerce import coerce_tool, coerce_tools
from kantan_agents.tools.guard import guard, is_switched_on, rules_in_force

__all__ = ["coerce_tool", "coerce_tools", "guard", "is_switched_on", "rules_in_force"]
