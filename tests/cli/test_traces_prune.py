"""``kantan-agents traces prune``: shows what would be deleted, and deletes it with ``--yes``."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.recorded_runs import Recorded


@pytest.fixture
def copy(shop: Recorded, tmp_path: Path) -> Recorded:
    """A private copy of the database."""
    path = tmp_path / "copy.sqlite3"
    shutil.copyfile(shop.path, path)
    return Recorded(path, shop.ids)


def ids(kantan_agents: Any, copy: Recorded) -> list[str]:
    outcome = kantan_agents("traces", "list", "--json", "--limit", "100", "--db", str(copy.path))
    return [run["trace_id"] for run in json.loads(outcome.stdout)]


def test_without_yes_it_only_shows_what_would_be_deleted(kantan_agents: Any, copy: Recorded) -> None:
    before = copy.path.read_bytes()
    outcome = kantan_agents("traces", "prune", "--keep", "2", "--db", str(copy.path))
    assert (outcome.code, outcome.stderr) == (0, "")
    first, second = outcome.stdout.splitlines()
    assert first.startswith("Would delete 7 traces with ")
    assert second == "Nothing was deleted. Add --yes to delete."
    assert copy.path.read_bytes() == before


def test_with_yes_runs_are_deleted(kantan_agents: Any, copy: Recorded) -> None:
    outcome = kantan_agents("traces", "prune", "--keep", "2", "--yes", "--db", str(copy.path))
    assert (outcome.code, outcome.stderr) == (0, "")
    assert outcome.stdout.startswith("Deleted 7 traces with ")
    assert ids(kantan_agents, copy) == [copy.ids["open"], copy.ids["items"]]
    again = kantan_agents("traces", "prune", "--keep", "2", "--yes", "--db", str(copy.path))
    assert again.stdout.startswith("Nothing to delete: the database is ")


def test_a_file_that_does_not_shrink_says_so_and_vacuum_shrinks_it(
    kantan_agents: Any, copy: Recorded
) -> None:
    with closing(sqlite3.connect(copy.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute("VACUUM")
    command = ("traces", "prune", "--keep", "2", "--db", str(copy.path))
    first, second, third = kantan_agents(*command).stdout.splitlines()
    assert first.startswith("Would delete 7 traces with ") and first.endswith(" are free for new runs.")
    assert second == "The file does not shrink. Add --vacuum to write it anew."
    assert third == "Nothing was deleted. Add --yes to delete."
    outcome = kantan_agents(*command, "--vacuum", "--yes")
    assert outcome.stdout.startswith("Deleted 7 traces with ")
    assert outcome.stdout.count("\n") == 1


def test_by_age(kantan_agents: Any, copy: Recorded) -> None:
    outcome = kantan_agents("traces", "prune", "--older-than", "30d", "--yes", "--db", str(copy.path))
    assert outcome.stdout.startswith("Nothing to delete")
    outcome = kantan_agents("traces", "prune", "--older-than", "0s", "--yes", "--db", str(copy.path))
    assert outcome.stdout.startswith("Deleted 9 traces with ")
    assert ids(kantan_agents, copy) == []


def test_by_size_and_limits_together(kantan_agents: Any, copy: Recorded) -> None:
    command = ("traces", "prune", "--max-size", "2GB", "--older-than", "1w", "--keep", "5", "--yes")
    outcome = kantan_agents(*command, "--db", str(copy.path))
    assert outcome.stdout.startswith("Deleted 4 traces with ")
    outcome = kantan_agents("traces", "prune", "--max-size", "1KiB", "--yes", "--db", str(copy.path))
    assert outcome.stdout.startswith("Deleted 5 traces with ")


def test_json(kantan_agents: Any, copy: Recorded) -> None:
    command = ("traces", "prune", "--keep", "8", "--json", "--db", str(copy.path))
    result = json.loads(kantan_agents(*command).stdout)
    assert (result["traces"], result["dry_run"]) == (1, True)
    assert result["spans"] > 1
    assert result["bytes_before"] >= result["bytes_after"] > 0
    result = json.loads(kantan_agents(*command, "--yes").stdout)
    assert (result["traces"], result["dry_run"]) == (1, False)


def test_a_terminal_gets_a_progress_bar_on_standard_error(
    kantan_agents: Any, copy: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda _self: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    outcome = kantan_agents("traces", "prune", "--keep", "2", "--yes", "--db", str(copy.path))
    assert outcome.code == 0
    assert "deleting" in outcome.stderr
    assert outcome.stdout.startswith("Deleted 7 traces")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--older-than, --keep, --max-size: give at least one of them"),
        (["--older-than", "30"], "--older-than: must be a number with s, m, h, d or w, such as"),
        (["--older-than", "-1d"], "--older-than: must be a number with s, m, h, d or w"),
        (["--max-size", "2"], "--max-size: must be a number with KB, MB, GB, KiB, MiB or GiB"),
        (["--max-size", "2XB"], "--max-size: must be a number with KB"),
        (["--max-size", "0GB"], "--max-size: must be a number with KB"),
        (["--max-size", "9" * 5000 + "GB"], "--max-size: must be a number with KB"),
    ],
)
def test_limits_that_cannot_be_read(
    kantan_agents: Any, copy: Recorded, options: list[str], message: str
) -> None:
    outcome = kantan_agents("traces", "prune", "--yes", "--db", str(copy.path), *options)
    outcome.is_one_error(f"[E75] Invalid option {message}")
    assert len(ids(kantan_agents, copy)) == 9
