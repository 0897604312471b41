"""Which entries of a subagent file have no effect here."""

from __future__ import annotations

from typing import Final

from kantan_agents.subagent_files.definition import AgentDefinition
from kantan_agents.subagent_files.frontmatter.keys import KEY_OF

ACTED_ON: Final = frozenset(
    {
        "name",
        "description",
        "tools",
        "disallowed_tools",
        "model",
        "context",
        "max_turns",
        "mcp_servers",
        "skills",
        "version",
    }
)
"""The fields that ``Agent.from_definition`` acts on. All others are only kept."""


def kept_without_effect(definition: AgentDefinition) -> tuple[str, ...]:
    """Return the keys of a definition that are kept and written back, and change nothing here.

    Together with the fields in ``ACTED_ON``, these are all that the definition has.
    """
    kept = (KEY_OF[field] for field in KEY_OF if field not in ACTED_ON and _is_given(definition, field))
    return (*kept, *definition.extra)


def _is_given(definition: AgentDefinition, field: str) -> bool:
    return getattr(definition, field) is not None
