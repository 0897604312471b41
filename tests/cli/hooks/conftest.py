"""Fixtures for hooks: a project as working directory, and a user whose file of hooks a test writes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Configure = Callable[..., Path]


def entry(command: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": command, **more}


def group(command: str, matcher: str = "", **more: Any) -> dict[str, Any]:
    """One entry of an event, with one command."""
    return {"matcher": matcher, "hooks": [entry(command, **more)]}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository as working directory, and a home beside it."""
    root = Path(os.path.realpath(tmp_path))
    (root / "home").mkdir()
    (root / "work/.git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(root / "home"))
    monkeypatch.delenv("KANTAN_AGENTS_CONFIG_DIR", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(root / "work")
    return root / "work"


@pytest.fixture
def own(work: Path) -> Path:
    """The user's configuration directory."""
    made = work.parent / "home/.config/kantan_agents"
    made.mkdir(parents=True, mode=0o755)
    return made


@pytest.fixture
def configure(own: Path) -> Configure:
    """``configure(PreToolUse=[group("exit 2")])`` writes the file of hooks."""

    def write(**events: Any) -> Path:
        path = own / "hooks.json"
        path.write_text(json.dumps({"hooks": events}))
        path.chmod(0o644)
        return path

    return write
