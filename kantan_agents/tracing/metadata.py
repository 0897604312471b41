"""The standard keys of trace metadata (spec 2.3 to 2.8, 4); pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kantan_agents.prompt import Prompt, hash_text

PROMPT_META_PREFIX = "prompt_meta_"

JUDGE_PROMPT_ID = "judge_prompt_id"
"""In the runs of a ``judge_agent``, whose prompt is the judged one: the hash of the judge's own wording."""


def finite(value: Any) -> Any:
    """Return ``value`` with None for every NaN and infinity in it, however deep, and str keys.

    JSON knows no such numbers, and one of them would make SQLite refuse every metadata search in the
    file.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(inner) for inner in value]
    return value


def flatten_meta(meta: Mapping[str, Any] | None) -> dict[str, str | int | float | bool]:
    """Return the scalar entries of ``Prompt.meta`` as ``prompt_meta_<key>`` (spec 2.8).

    Strings, numbers and booleans only; NaN and infinities are left out, as JSON has none.
    """
    return {
        f"{PROMPT_META_PREFIX}{key}": value
        for key, value in (meta or {}).items()
        if isinstance(value, (str, int, float))
        and not (isinstance(value, float) and not math.isfinite(value))
    }


def prompt_metadata(agent_name: str, instructions: str | Prompt) -> dict[str, Any]:
    """Return the standard keys that are the same for every run of an agent (spec 4.1, 4.2).

    With a ``Prompt``: its name, version, id and scalar meta. With a plain str the prompt takes the
    agent's name, its id is the hash of the text, and there is no version.
    """
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


def run_metadata(user: dict[str, Any], standard: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """Return the metadata of one run: the user's own, then the standard keys, which always win."""
    return {**user, **standard, "agent_run_id": run_id}
