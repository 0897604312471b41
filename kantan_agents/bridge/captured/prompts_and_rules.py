"""Contents that many runs have in common: prompts and rules are encoded once, each as long as it exists."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from kantan_agents.bridge.captured.definitions import encode
from kantan_agents.prompt import Prompt, hash_text
from kantan_agents.tool_rules import RuleLayers

_rules: WeakKeyDictionary[RuleLayers, msgspec.Raw] = WeakKeyDictionary()
_prompts: WeakKeyDictionary[Any, tuple[Any, msgspec.Raw]] = WeakKeyDictionary()


def packed_rules(layers: RuleLayers) -> msgspec.Raw:
    """Return rules as JSON."""
    known = _rules.get(layers)
    if known is None:
        known = _rules[layers] = msgspec.Raw(encode(_rules_data(layers)))
    return known


def _rules_data(layers: RuleLayers) -> dict[str, Any]:
    return {
        "layers": [[name, rules.to_dict()] for name, rules in layers.layers],
        "limits": [
            [name, {**rules.to_dict(), "folds_denials": rules.folds_denials}] for name, rules in layers.limits
        ],
    }


def packed_prompt(agent: Any) -> msgspec.Raw:
    """Return the prompt of an agent as JSON."""
    prompt, known = agent.instructions, _prompts.get(agent)
    if known is None or known[0] is not prompt:
        known = _prompts[agent] = (prompt, msgspec.Raw(encode(_prompt_data(agent.name, prompt))))
    return known[1]


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
