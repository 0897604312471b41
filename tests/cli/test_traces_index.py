"""``kantan-agents traces index``: builds the search index, goes on after an interrupt, and removes it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import TraceStore
from kantan_agents.traces.store import index
from tests.cli.recorded_runs import Recorded


@pytest.fixture
def copy(shop: Recorded, tmp_path: Path) -> Recorded:
    """A private copy of the database, without its index, as of an earlier version."""
    path = tmp_path / "copy.sqlite3"
    shutil.copyfile(shop.path, path)
    TraceStore(path).remove_index()
    return Recorded(path, shop.ids)


def test_an_old_database_is_indexed_once(kantan_agents: Any, copy: Recorded) -> None:
    command = ("traces", "index", "--db", str(copy.path))
    search = ("traces", "search", "order", "--json", "--db", str(copy.path))
    before = kantan_agents(*search).stdout
    outcome = kantan_agents(*command)
    assert (outcome.code, outcome.stderr) == (0, "")
    assert outcome.stdout.startswith(f"Indexed {len(copy.ids)} traces; the database was ")
    assert kantan_agents(*search).stdout == before
    again = kantan_agents(*command)
    assert again.stdout.startswith("Nothing to index; the database is ")
    removed = kantan_agents(*command, "--remove")
    assert removed.stdout.startswith("Removed the index; the database was ")
    assert kantan_agents(*search).stdout == before


def test_as_json(kantan_agents: Any, copy: Recorded) -> None:
    command = ("traces", "index", "--json", "--db", str(copy.path))
    result = json.loads(kantan_agents(*command).stdout)
    assert (result["traces"], result["skipped"]) == (len(copy.ids), 0)
    assert result["bytes_before"] < result["bytes_after"]
    assert json.loads(kantan_agents(*command, "--remove").stdout)["traces"] == 0


def test_an_interrupt_keeps_what_is_done_and_says_so(
    kantan_agents: Any, copy: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_TRACES_AT_ONCE", 2)
    add, calls = index._add, []

    def interrupted(*args: Any) -> None:
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        add(*args)

    monkeypatch.setattr(index, "_add", interrupted)
    command = ("traces", "index", "--db", str(copy.path))
    outcome = kantan_agents(*command)
    assert outcome.code == 130
    assert f"Indexed 4 of {len(copy.ids)} traces. Run the command again to go on." in outcome.stderr
    outcome = kantan_agents(*command)
    assert outcome.stdout.startswith(f"Indexed {len(copy.ids) - 4} traces")


def test_runs_that_are_too_long_are_named(
    kantan_agents: Any, copy: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_LONGEST", 10)
    command = ("traces", "index", "--db", str(copy.path))
    first, second = kantan_agents(*command).stdout.splitlines()
    assert first.startswith("Nothing to index")
    assert second == f"{len(copy.ids)} traces are too long for the index. Searches read them."


def test_a_missing_database_is_one_line(kantan_agents: Any, tmp_path: Path) -> None:
    outcome = kantan_agents("traces", "index", "--db", str(tmp_path / "none.sqlite3"))
    assert outcome.code == 2
    assert outcome.stderr.count("\n") == 1
    assert "E60" in outcome.stderr
