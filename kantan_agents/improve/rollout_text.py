"""The code and the command that deploy a new version; nothing is deployed by itself."""

from __future__ import annotations

import shlex
from pathlib import Path

from kantan_agents.prompt import Prompt


def rollout_code(old: Prompt, new: Prompt, file: Path) -> tuple[str, str]:
    """Return two lines of Python: the new version, and a rollout that gives it to nobody yet.

    Names and paths are written as Python literals, so nothing in them is code.

    Args:
        old: The old version, the instructions of ``agent``.
        new: The new version.
        file: The file with its text.
    """
    shares = f"shares={{{old.version!r}: 1, {new.version!r}: 0}}, ramp=(0, .1, .5, 1)"
    versions = f"{{{old.version!r}: agent.instructions, {new.version!r}: new}}"
    read = f"Path({str(file)!r}).read_text(encoding='utf-8')"
    return (
        f"new = Prompt({new.name!r}, {new.version!r}, {read})",
        f"rollout = Rollout({versions}, {shares}, unit='user.id', metric='rubric')",
    )


def rollout_command(agent: str, database: Path) -> str:
    """Return the command that gives the new version to the first users."""
    return shlex.join(["kantan-agents", "rollout", "promote", agent, "--db", str(database)])
