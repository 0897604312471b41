"""The metadata keys and span names (spec 2.3 to 2.8, 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kantan_agents.core.prompt import Prompt, hash_text

REFUSAL_SPAN = "tool_refused"

RUN_SPAN = "agent_run"

JUDGE_SPAN = "judge"

STOP_SPAN = "stopped_after_turn"

RECOVERY_SPAN = "went_on"
"""Span of a durable run that resumes in another process."""

PROMPT_META_PREFIX = "prompt_meta_"

ROLLOUT = "rollout"
ARM = "arm"
ARM_SHARE = "arm_share"
"""Probability of the arm, 0 to 1; missing if it was not sampled."""
ROLLOUT_UNIT = "rollout_unit"
"""Pseudonym of the sampling unit: 16 hexadecimal digits."""
NOT_DRAWN = "rollout_not_drawn"
COMMAND_MODEL = "kantan_agents_command_model"
CHOSEN_KEYS = (ROLLOUT, ARM, ARM_SHARE, ROLLOUT_UNIT, NOT_DRAWN, COMMAND_MODEL)
"""A run that resumes from a state retains these."""

JUDGE_PROMPT_ID = "judge_prompt_id"
"""Hash of the judge's instructions; the prompt keys name the judged prompt."""


_DEEPEST = 200
ENDLESS = "..."
"""Replaces a cyclic or too deep value."""


def finite(value: Any, _around: tuple[int, ...] = ()) -> Any:
    """Return valid JSON data: str keys, None for NaN and infinity, ``ENDLESS`` for a cycle.

    A single NaN would fail every metadata search in the file.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    if id(value) in _around or len(_around) >= _DEEPEST:
        return ENDLESS
    around = (*_around, id(value))
    if isinstance(value, Mapping):
        return {str(key): finite(inner, around) for key, inner in value.items()}
    return [finite(inner, around) for inner in value]


def chosen_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``CHOSEN_KEYS`` of a run's metadata."""
    return {key: metadata[key] for key in CHOSEN_KEYS if key in metadata}


def flatten_meta(meta: Mapping[str, Any] | None) -> dict[str, str | int | float | bool]:
    """Return the scalars of ``Prompt.meta`` as ``prompt_meta_<key>`` (spec 2.8)."""
    return {
        f"{PROMPT_META_PREFIX}{key}": value
        for key, value in (meta or {}).items()
        if isinstance(value, (str, int, float))
        and not (isinstance(value, float) and not math.isfinite(value))
    }


def hosted_prompt_metadata(prompt: Any) -> dict[str, str]:
    """Return the keys for a ``prompt`` at OpenAI; none for a function."""
    if not isinstance(prompt, Mapping):
        return {}
    known = {"hosted_prompt_id": prompt.get("id"), "hosted_prompt_version": prompt.get("version")}
    return {key: str(value) for key, value in known.items() if value is not None}


def prompt_metadata(agent_name: str, instructions: str | Prompt, hosted: Any = None) -> dict[str, Any]:
    """Return the standard keys that are equal in every run of an agent (spec 4.1, 4.2)."""
    if hosted is not None:
        return _with_hosted_prompt(agent_name, instructions, hosted)
    if not isinstance(instructions, Prompt):
        return {
            "agent_name": agent_name,
            "prompt_name": agent_name,
            "prompt_id": hash_text(instructions),
        }
    return {
        "agent_name": agent_name,
        "prompt_name": instructions.name,
        "prompt_version": instructions.version,
        "prompt_id": instructions.resolve_id(),
        **flatten_meta(instructions.meta),
    }


def _with_hosted_prompt(agent_name: str, instructions: str | Prompt, hosted: Any) -> dict[str, Any]:
    known = hosted_prompt_metadata(hosted)
    if instructions:
        return prompt_metadata(agent_name, instructions) | known
    metadata = {"agent_name": agent_name, "prompt_name": agent_name, **known}
    for key in ("prompt_id", "prompt_version"):
        if f"hosted_{key}" in known:
            metadata[key] = known[f"hosted_{key}"]
    return metadata


def origin_metadata(origins: str) -> dict[str, str]:
    """Return the standard key with the origins of tools, if any."""
    return {"tool_origins": origins} if origins else {}


def run_metadata(user: dict[str, Any], standard: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """Merge the user's entries and the standard keys, which always win."""
    return {**user, **standard, "agent_run_id": run_id}
