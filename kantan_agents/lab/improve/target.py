"""Finds the prompt to improve; names its next version."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

import attrs

from kantan_agents.agent import Agent
from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import InvalidOptionError, PromptNotImprovableError
from kantan_agents.support.nearest import nearest
from kantan_agents.traces.store import TraceStore
from kantan_agents.traces.store.connection import reading
from kantan_agents.traces.store.prompt_texts import texts_by_version

_NUMBER: Final = re.compile(r"(?P<before>.*?)(?P<number>[0-9]{1,9})", re.DOTALL)


@attrs.frozen
class ImproveTarget:
    """The agent, the prompt to improve, and its recorded versions."""

    agent: Agent[Any]
    old: Prompt
    recorded_versions: tuple[str, ...]

    def agent_with_another_text(self, text: str) -> Agent[Any]:
        """Return the agent with any prompt but this one, so that a change has an effect."""
        other = self.old.text if self.old.text != text else f"{self.old.text}\n"
        return self.agent.clone(instructions=attrs.evolve(self.old, text=other, id=None))


def find_target(agent: Any, store: TraceStore, prompt: str | None, version: str | None) -> ImproveTarget:
    """Return the prompt to improve, by default the agent's; raise E120 if it is missing."""
    if not isinstance(agent, Agent):
        raise InvalidOptionError(option="agent", reason=f"must be an Agent, not {type(agent).__name__}")
    own = agent.instructions
    if not isinstance(own, Prompt):
        named = prompt or agent.name
        reason = f"the agent {agent.name!r} has no Prompt with a name and a version as its instructions"
        raise PromptNotImprovableError(prompt=named, reason=reason)
    if prompt is not None and prompt != own.name:
        near = nearest(prompt, [own.name])
        hint = f"did you mean {near!r}?" if near is not None else f"its prompt is {own.name!r}"
        raise PromptNotImprovableError(
            prompt=prompt, reason=f"the agent {agent.name!r} does not have it; {hint}"
        )
    with reading(store.path, by_trace=False) as connection:
        texts = texts_by_version(connection, own.name)
    recorded = {str(key[1]): found.prompts[-1].text for key, found in texts.items() if key[1] is not None}
    if version is None or version == own.version:
        return ImproveTarget(agent, own, tuple(recorded))
    if version not in recorded:
        near = nearest(version, [*recorded, own.version])
        known = ", ".join(sorted({*recorded, own.version}))
        hint = f"did you mean {near!r}?" if near is not None else f"there are {known}"
        raise PromptNotImprovableError(
            prompt=own.name, reason=f"no recorded run has used the version {version!r}; {hint}"
        )
    old = attrs.evolve(own, version=version, text=recorded[version], id=None)
    return ImproveTarget(agent, old, tuple(recorded))


def next_version(version: str, taken: Collection[str]) -> str:
    """Return the next free version name: ``v2`` after ``v1``, ``draft-2`` after ``draft``."""
    numbered = _NUMBER.fullmatch(version)
    before, number = (f"{version}-", 1) if numbered is None else (numbered["before"], int(numbered["number"]))
    while True:
        number += 1
        name = f"{before}{number}"
        if name not in taken:
            return name
