"""Subagent files: parses, repairs, validates, finds and writes agents defined as Markdown with frontmatter.

Nothing in a file is executed, and this package does not depend on the SDK (spec subagents).
"""

from kantan_agents.subagent_files.definition import AgentDefinition
from kantan_agents.subagent_files.grants import Grants, grants_of
from kantan_agents.subagent_files.loading.agents import AgentCatalog, AgentLoader, ShadowedAgent
from kantan_agents.subagent_files.loading.directories import AgentDirectory
from kantan_agents.subagent_files.names import MODELS, model_of, name_key
from kantan_agents.subagent_files.problems import Problem
from kantan_agents.subagent_files.tool_lists import ToolFilter

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
