"""``Agent.clone``: the options of an Agent like another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import agents

from kantan_agents.agent.options import check_options, checked_items


def changed_options(agent: Any, given: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a changed copy.

    Args:
        agent: The Agent.
        given: The options that it was created with.
        changes: The options to change.

    Raises:
        InvalidOptionError: E75, an Agent has no option of this name.
    """
    check_options(changes, [*given, *agents.Agent.__dataclass_fields__])
    options = {**given, **changes}
    if "tools" in changes:
        # Those of `agent.tools` without their guards: the copy guards them for itself.
        as_given = agent._sdk_agent.as_given
        options["tools"] = [as_given(tool) for tool in checked_items("tools", changes["tools"])]
    return options
