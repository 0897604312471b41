"""The code and the command that deploy a new version; nothing is deployed by itself."""

from __future__ import annotations

import ast
import shlex
from pathlib import Path

from kantan_agents.core.prompt import Prompt


def rollout_code(old: Prompt, own: object, new: Prompt, file: Path) -> tuple[str, str]:
    """Return two lines of Python: the new version, and a rollout that gives it to nobody yet.

    Names, texts and paths are written as Python literals, so nothing in them is code.

    Args:
        old: The old version.
        own: The instructions of ``agent``.
        new: The new version.
        file: The file with its text.
    """
    shares = f"shares={{{old.version!r}: 1, {new.version!r}: 0}}, ramp=(0, .1, .5, 1)"
    control = "agent.instructions" if old == own else _prompt(old, repr(old.text))
    versions = f"{{{old.version!r}: {control}, {new.version!r}: new}}"
    # Not read_text, which would change the ends of lines.
    return (
        f"new = {_prompt(new, f'Path({str(file)!r}).read_bytes().decode()')}",
        f"rollout = Rollout({versions}, {shares}, unit='user.id', metric='rubric')",
    )


def _prompt(prompt: Prompt, text: str) -> str:
    options = [f"{name}=True" for name in ("strict", "literal") if getattr(prompt, name)]
    meta = None if prompt.meta is None else repr(dict(prompt.meta))
    if meta is not None and _is_literal(meta):
        options.insert(0, f"meta={meta}")
    return f"Prompt({', '.join([repr(prompt.name), repr(prompt.version), text, *options])})"


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def rollout_command(agent: str, database: Path) -> str:
    """Return the command that gives the new version to the first users."""
    return shlex.join(["kantan-agents", "rollout", "promote", agent, "--db", str(database)])
