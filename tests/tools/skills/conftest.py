"""Fixtures: a folder of skills, and agents whose model follows a script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WriteSkill = Callable[..., Path]


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the reply of a model that calls a tool."""
    return {"tool": tool, "arguments": arguments}


def outputs(context: Any) -> list[str]:
    """Return what the tools of a run have returned, in order."""
    items = context["result"].new_items
    return [item.output for item in items if item.type == "tool_call_output_item"]


def shown(model: Any, turn: int) -> list[str]:
    """Return the names of the tools that a model was shown."""
    return [tool.name for tool in model.calls[turn].tools]


def fill(form: str) -> str:
    """Fill a form."""
    return f"{form} is filled"


def shell(command: str) -> str:
    """Run a command."""
    return f"{command} has run"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for skills, next to other files."""
    (tmp_path / "secret.txt").write_text("TOP SECRET", encoding="utf-8")
    made = tmp_path / "skills"
    made.mkdir()
    return made


@pytest.fixture
def write_skill(folder: Path) -> WriteSkill:
    """Return a function that writes a skill and returns its folder."""

    def write(
        name: str, more: str = "", body: str = "Do it.", *, description: str = "", at: Path | None = None
    ) -> Path:
        place = (at or folder) / name
        place.mkdir(parents=True, exist_ok=True)
        head = f"---\nname: {name}\ndescription: {description or f'Knows {name}'}\n{more}---\n\n"
        (place / "SKILL.md").write_text(head + body, encoding="utf-8")
        return place

    return write
