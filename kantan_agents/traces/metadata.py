"""The metadata keys and span names that this library adds to traces (spec 2.3 to 2.8, 4); pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kantan_agents.core.prompt import Prompt, hash_text

REFUSAL_SPAN = "tool_refused"
"""Name of the ``custom`` span of a call that the tool rules deny."""

RUN_SPAN = "agent_run"
"""Name of the ``custom`` span of a run inside an open trace, and of a handoff target."""

JUDGE_SPAN = "judge"
"""Name of the ``custom`` span that carries a rubric."""

STOP_SPAN = "stopped_after_turn"
"""Name of the ``custom`` span of a streamed run that its reader stopped after a turn."""

RECOVERY_SPAN = "went_on"
"""Name of the ``custom`` span of a durable run that resumes in another process."""

PROMPT_META_PREFIX = "prompt_meta_"

ROLLOUT = "rollout"
"""Name of the rollout that chose the arm of a run."""
ARM = "arm"
"""Name of the arm."""
ARM_SHARE = "arm_share"
"""The probability of this arm at that moment, 0 to 1; missing if the arm was not sampled."""
ROLLOUT_UNIT = "rollout_unit"
"""Pseudonym of the sampling unit: 16 hexadecimal digits."""
NOT_DRAWN = "rollout_not_drawn"
"""Why the arm was not sampled."""
COMMAND_MODEL = "kantan_agents_command_model"
"""Name of the model that a command's file chose for a run."""
CHOSEN_KEYS = (ROLLOUT, ARM, ARM_SHARE, ROLLOUT_UNIT, NOT_DRAWN, COMMAND_MODEL)
"""Keys of the choices for a run; a run that resumes from a state retains them."""

JUDGE_PROMPT_ID = "judge_prompt_id"
"""Hash of the judge's instructions, in runs of a ``judge_agent``; their prompt is the judged one."""


_DEEPEST = 200
ENDLESS = "..."
"""Replaces a value that contains itself or is nested too deeply."""


def finite(value: Any, _around: tuple[int, ...] = ()) -> Any:
    """Return ``value`` as valid JSON data: str keys, None for NaN and infinity, ``ENDLESS`` for a cycle.

    A single NaN would make every metadata search in the file fail in SQLite.
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
    """Return the scalars of ``Prompt.meta`` as ``prompt_meta_<key>`` (spec 2.8); omit NaN and infinity."""
    return {
        f"{PROMPT_META_PREFIX}{key}": value
        for key, value in (meta or {}).items()
        if isinstance(value, (str, int, float))
        and not (isinstance(value, float) and not math.isfinite(value))
    }


def hosted_prompt_metadata(prompt: Any) -> dict[str, str]:
    """Return the keys for a prompt that OpenAI stores; none for a function, whose prompt is not known yet.

    ``prompt`` is the ``prompt`` option of an agent: a mapping with ``id`` and perhaps ``version``.
    """
    if not isinstance(prompt, Mapping):
        return {}
    known = {"hosted_prompt_id": prompt.get("id"), "hosted_prompt_version": prompt.get("version")}
    return {key: str(value) for key, value in known.items() if value is not None}


def prompt_metadata(agent_name: str, instructions: str | Prompt, hosted: Any = None) -> dict[str, Any]:
    """Return the standard keys that are equal in every run of an agent (spec 4.1, 4.2).

    A ``Prompt`` gives its name, version, id and scalar meta. A plain str gives the agent's name as prompt
    name, its hash as id, and no version. Without instructions, ``hosted`` (the ``prompt`` option) gives id
    and version.
    """
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
    """Return the standard key with the origins of an agent's tools; none without tools."""
    return {"tool_origins": origins} if origins else {}


def run_metadata(user: dict[str, Any], standard: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """Return the metadata of one run: the user's entries and the standard keys, which always win."""
    return {**user, **standard, "agent_run_id": run_id}
