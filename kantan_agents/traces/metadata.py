"""The metadata keys and span names that this library adds to traces (spec 2.3 to 2.8, 4); pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kantan_agents.core.prompt import Prompt, hash_text

REFUSAL_SPAN = "tool_refused"
"""Name of the ``custom`` span of a call that the tool rules refuse."""

RUN_SPAN = "agent_run"
"""Name of the ``custom`` span of a run inside an open trace, and of a hand-off target."""

JUDGE_SPAN = "judge"
"""Name of the ``custom`` span that carries a rubric."""

STOP_SPAN = "stopped_after_turn"
"""Name of the ``custom`` span of a streamed run that its reader has ended after a turn."""

RECOVERY_SPAN = "went_on"
"""Name of the ``custom`` span of a durable run that goes on in another process."""

PROMPT_META_PREFIX = "prompt_meta_"

ROLLOUT = "rollout"
"""Name of the rollout that has chosen the arm of a run."""
ARM = "arm"
"""Name of the arm."""
ARM_SHARE = "arm_share"
"""The probability of this arm at that moment, 0 to 1; missing if the arm was not drawn."""
ROLLOUT_UNIT = "rollout_unit"
"""What identifies the unit without naming it: 16 hexadecimal digits."""
NOT_DRAWN = "rollout_not_drawn"
"""Why the arm was not drawn."""
COMMAND_MODEL = "kantan_agents_command_model"
"""Name of the model that the file of a command has chosen for a run."""
CHOSEN_KEYS = (ROLLOUT, ARM, ARM_SHARE, ROLLOUT_UNIT, NOT_DRAWN, COMMAND_MODEL)
"""The keys that say what was chosen for a run; one that goes on from a state keeps it."""

JUDGE_PROMPT_ID = "judge_prompt_id"
"""Hash of the judge's own text, in the runs of a ``judge_agent``; their prompt is the one that they judge."""


_DEEPEST = 200
ENDLESS = "..."
"""Replaces in metadata a value that contains itself, or that is nested too deeply."""


def finite(value: Any, _around: tuple[int, ...] = ()) -> Any:
    """Return ``value`` as JSON can have it: with str keys, None for each NaN and infinity, and an end.

    JSON has no such numbers. A single one would make every metadata search in the file fail in SQLite.
    A value inside itself becomes ``ENDLESS``.
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
    """Return those of the metadata of a run that say what was chosen for it."""
    return {key: metadata[key] for key in CHOSEN_KEYS if key in metadata}


def flatten_meta(meta: Mapping[str, Any] | None) -> dict[str, str | int | float | bool]:
    """Return the scalar entries of ``Prompt.meta`` as ``prompt_meta_<key>`` (spec 2.8).

    Only strings, numbers and booleans are included. NaN and infinities are left out, as JSON has no such
    numbers.
    """
    return {
        f"{PROMPT_META_PREFIX}{key}": value
        for key, value in (meta or {}).items()
        if isinstance(value, (str, int, float))
        and not (isinstance(value, float) and not math.isfinite(value))
    }


def hosted_prompt_metadata(prompt: Any) -> dict[str, str]:
    """Return the keys for a prompt that OpenAI stores; nothing for a function, whose prompt is not known yet.

    Args:
        prompt: The ``prompt`` option of an agent: a mapping with ``id`` and perhaps ``version``.
    """
    if not isinstance(prompt, Mapping):
        return {}
    known = {"hosted_prompt_id": prompt.get("id"), "hosted_prompt_version": prompt.get("version")}
    return {key: str(value) for key, value in known.items() if value is not None}


def prompt_metadata(agent_name: str, instructions: str | Prompt, hosted: Any = None) -> dict[str, Any]:
    """Return the standard keys that are the same in every run of an agent (spec 4.1, 4.2).

    For a ``Prompt``: its name, version, id and scalar meta. For a plain str: the agent's name as prompt name,
    the hash of the text as id, and no version.

    Args:
        agent_name: Name of the agent.
        instructions: Its instructions.
        hosted: Its ``prompt`` option. Without instructions, its id and version are those of the prompt.
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
    """Return the standard key that says where the tools of an agent come from; nothing without tools."""
    return {"tool_origins": origins} if origins else {}


def run_metadata(user: dict[str, Any], standard: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """Return the metadata of one run: the user's entries and the standard keys, which always win."""
    return {**user, **standard, "agent_run_id": run_id}
