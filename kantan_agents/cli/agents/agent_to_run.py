"""Finds the agent that a command names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from kantan_agents.cli.terminal.replaced import say_replaced
from kantan_agents.errors import AgentNotFoundError, InvalidOptionError
from kantan_agents.subagent_files import AgentCatalog, AgentDefinition, AgentLoader, name_key

if TYPE_CHECKING:
    from kantan_agents.cli.agents.pinned_files import PinnedFiles


@attrs.frozen(eq=False)
class AgentToRun:
    """An agent to run, with its ``pinned`` files."""

    definition: AgentDefinition
    loader: AgentLoader
    pinned: PinnedFiles


def find_agent(catalog: AgentCatalog, name: str) -> AgentDefinition:
    """Return the named agent, or raise its file's error."""
    try:
        return catalog.get(name)
    except AgentNotFoundError:
        key = name_key(name)
        for problem in catalog.problems:
            path = problem.path
            if path and path.suffix and name_key(path.stem) == key:
                AgentDefinition.load(path)
        raise


def read_agent(name: str) -> AgentToRun:
    """Return the agent of a name or ``.md`` path; report replaced agents."""
    loader = AgentLoader()
    loader.pin()
    is_file = name.endswith(".md")
    definition = AgentDefinition.load(name) if is_file else find_agent(loader.load_agents_now(), name)
    if not definition.system_prompt.strip():
        reason = f"{definition.name} has no prompt, its file ends with the frontmatter: {definition.path}"
        raise InvalidOptionError(option="--agent", reason=reason)
    say_replaced("agent", loader.load_agents_now().shadowed, loader.directories)
    # Imported here: finding an agent needs neither.
    from kantan_agents.cli.agents.pinned_files import PinnedFiles
    from kantan_agents.tools.skills import SkillLoader

    return AgentToRun(definition, loader, PinnedFiles([loader], [SkillLoader()], definition))
