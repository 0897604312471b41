"""Agents as Markdown files: what such a file says, read as it is found and written as every reader likes it.

Nothing a file says is executed, and this room knows no SDK (spec subagents).
"""

from kantan_agents.definitions.definition import AgentDefinition
from kantan_agents.definitions.grants import Grants, grants_of
from kantan_agents.definitions.loading.catalog import AgentCatalog, ShadowedAgent
from kantan_agents.definitions.loading.directories import AgentDirectory
from kantan_agents.definitions.loading.loader import AgentLoader
from kantan_agents.definitions.model_names import MODELS, model_of
from kantan_agents.definitions.names import name_key
from kantan_agents.definitions.problems import Problem
from kantan_agents.definitions.tool_lists import ToolFilter

__all__ = [
    "MODELS",
    "AgentCatalog",
    "AgentDefinition",
    "AgentDirectory",
    "AgentLoader",
    "Grants",
    "Problem",
    "ShadowedAgent",
    "ToolFilter",
    "grants_of",
    "model_of",
    "name_key",
]
