"""Encodes prompts and rules once, for the records of all runs."""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

import attrs

from kantan_agents.agent.bridge.captured.definitions import encode
from kantan_agents.core.prompt import Prompt, hash_text
from kantan_agents.tool_rules import RuleLayers
from kantan_agents.traces.capture.shared import Shared


@attrs.frozen(eq=False)
class DescribedAgent:
    """The record's description of an agent; ``template`` is None without placeholders."""

    instructions: Any
    data: dict[str, Any]
    template: str | None


# Next to the values that rules compute and cache themselves.
_SHARED: Final = "_kantan_shared"

_agents: WeakKeyDictionary[Any, DescribedAgent] = WeakKeyDictionary()


def shared_rules(layers: RuleLayers) -> Shared:
    """Return rules as shared content."""
    fields = layers.__dict__
    known: Shared | None = fields.get(_SHARED)
    if known is None:
        known = fields[_SHARED] = Shared("rules", encode(_rules_data(layers)))
    return known


def _rules_data(layers: RuleLayers) -> dict[str, Any]:
    return {
        "layers": [[name, rules.to_dict()] for name, rules in layers.layers],
        "limits": [
            [name, {**rules.to_dict(), "folds_denials": rules.folds_denials}] for name, rules in layers.limits
        ],
    }


def described_agent(agent: Any, prompt: Any) -> DescribedAgent:
    """Return the description of an agent; every run waits for this."""
    known = _agents.get(agent)
    if known is None or known.instructions is not prompt:
        data = {
            "name": agent.name,
            "prompt": Shared("prompt", encode(_prompt_data(agent.name, prompt))),
            "options": Shared("options", bytes(agent.recorded_options)),
        }
        known = _agents[agent] = DescribedAgent(prompt, data, _template(prompt))
    return known


def _template(prompt: Any) -> str | None:
    text = prompt
    if isinstance(prompt, Prompt):
        text = None if prompt.literal else prompt.text
    return text if isinstance(text, str) and "{{" in text else None


def _prompt_data(name: str, prompt: Any) -> dict[str, Any]:
    if not isinstance(prompt, Prompt):
        text = prompt or ""
        return {"id": hash_text(text), "name": name, "version": None, "text": text}
    data: dict[str, Any] = {
        "id": prompt.resolve_id(),
        "name": prompt.name,
        "version": prompt.version,
        "text": prompt.text,
    }
    if prompt.meta:
        data["meta"] = prompt.meta
    if prompt.literal:
        data["is_literal"] = True
    if prompt.strict:
        data["is_strict"] = True
    return data
