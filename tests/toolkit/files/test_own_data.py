"""The folder of this library's data is closed to tools for files, even if their root contains it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kantan_agents.errors import InvalidOptionError
from kantan_agents.toolkit import toolkit
from tests.toolkit.files.calling import Tools, snapshot

SECRET = "gE7-secret"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: Any) -> Path:
    folder = tmp_path / ".local/share/kantan-agents/undo"
    folder.mkdir(parents=True)
    (folder / "snapshots.sqlite3").write_text(SECRET)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    return tmp_path


@pytest.mark.parametrize("place", ["", "sub"])
async def test_no_tool_reads_or_writes_it(home: Path, place: str) -> None:
    before = snapshot(home)
    tools = Tools(home if not place else home / ".local", protected="allow")
    folder = f"{'' if place else '.local/'}share/kantan-agents/undo"
    file = f"{folder}/snapshots.sqlite3"
    for given in (file, str(home / ".local/share/kantan-agents/undo/snapshots.sqlite3")):
        for name, arguments in (
            ("Read", {}),
            ("Write", {"content": "x"}),
            ("Edit", {"old_string": SECRET, "new_string": "x"}),
            ("MultiEdit", {"edits": [{"old_string": SECRET, "new_string": "x"}]}),
        ):
            assert "[E160]" in await tools(name, file_path=given, **arguments), (name, given)
    assert "[E160]" in await tools("Write", file_path=f"{folder}/new/file", content="x")
    assert "[E160]" in await tools("LS", path=folder)
    assert "snapshots.sqlite3" not in await tools("Glob", pattern="**/*")
    assert "snapshots.sqlite3" not in await tools("Grep", pattern=SECRET)
    assert snapshot(home) == before


async def test_a_tool_cannot_make_it_first(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    tools = Tools(tmp_path)
    result = await tools("Write", file_path="data/kantan-agents/undo/snapshots.sqlite3", content="x")
    assert "[E160]" in result
    assert [path.name for path in (tmp_path / "data").rglob("*")] == ["kantan-agents"]


@pytest.mark.parametrize("below", ["", "undo"])
def test_it_is_no_root(home: Path, below: str) -> None:
    with pytest.raises(InvalidOptionError, match="kantan-agents stores its data there"):
        toolkit(home / ".local/share/kantan-agents" / below)


def test_a_user_without_a_home_folder_has_none(tmp_path: Path, monkeypatch: Any) -> None:
    def unknown() -> Path:
        raise RuntimeError("no home folder")

    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    assert toolkit(tmp_path)
