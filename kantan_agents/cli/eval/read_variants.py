"""Reads the variants of ``kantan-agents eval run``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kantan_agents.agent import Agent
from kantan_agents.cli.terminal.inputs import read_text
from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import InvalidOptionError

_OPTION: Final = "--variant"
_BASELINE: Final = "baseline"


def read_variants(agent: Agent[Any], entries: Sequence[str]) -> dict[str, Agent[Any] | str]:
    """Return the agent and the other prompts for it, by name.

    Args:
        agent: The agent, which is named by the version of its prompt.
        entries: Other prompts, ``NAME=FILE``.

    Raises:
        InvalidOptionError: E75, an entry cannot be read, a file is empty, or two have one name.
        FileArgumentError: E79, a file cannot be read.
    """
    prompt = agent.instructions
    first = prompt.version if isinstance(prompt, Prompt) else _BASELINE
    variants: dict[str, Agent[Any] | str] = {first: agent}
    for entry in entries:
        name, mark, path = entry.partition("=")
        if not mark or not name.strip() or not path:
            raise InvalidOptionError(option=_OPTION, reason=f"must be NAME=FILE, not {entry!r}")
        if name in variants:
            whose = "is the version of the agent's own prompt" if name == first else "is given twice"
            raise InvalidOptionError(option=_OPTION, reason=f"{name!r} {whose}; choose another name")
        text = read_text(Path(path))
        if not text.strip():
            raise InvalidOptionError(option=_OPTION, reason=f"{path} is empty, and a prompt must not be")
        variants[name] = text
    return variants
