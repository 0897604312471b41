"""Fixtures: a home and a project for subagent files, and a record of the files that are read."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import attrs
import pytest

from kantan_agents import AgentLoader
from kantan_agents.subagent_files.frontmatter.document import read_regular_file
from kantan_agents.subagent_files.loading import cache, scan


@attrs.frozen
class Places:
    """The places searched for subagent files: a repository and the user's home."""

    project: Path
    home: Path

    def loader(self, **options: Any) -> AgentLoader:
        return AgentLoader(cwd=self.project, home=self.home, **options)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.delenv("KODE_CONFIG_DIR", raising=False)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    project, home = tmp_path / "project", tmp_path / "home"
    (project / ".git").mkdir(parents=True)
    home.mkdir()
    return Places(Path(os.path.realpath(project)), home)


@pytest.fixture
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every file old enough not to be racy; the test must use distinct file times."""
    for module in (scan, cache):
        monkeypatch.setattr(module, "clock_ns", lambda: time.time_ns() + 10**10)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files read so far, in order."""
    names: list[str] = []

    def recorded(path: str, limit: int) -> tuple[bytes, os.stat_result]:
        names.append(Path(path).name)
        return read_regular_file(path, limit)

    monkeypatch.setattr("kantan_agents.subagent_files.loading.cache.read_regular_file", recorded)
    return names
