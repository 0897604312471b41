"""``kantan-agents runs``: list, show, cancel, resume, events."""

from __future__ import annotations

import base64
import json
import os
import pickle
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from kantan_agents.testing import OfflineServer
from tests.cli.conftest import Invoke
from tests.cli.durable_shop import Shop, answer
from tests.programs import Preloaded


@pytest.fixture
def shop(tmp_path: Path, preloaded: Preloaded) -> Iterator[Shop]:
    """Durable agents, their model and a new database."""
    with OfflineServer(answer) as server:
        yield Shop(tmp_path, server, preloaded)


def test_a_queued_run_is_cancelled_resumed_and_made(shop: Shop, kantan_agents: Invoke) -> None:
    db = ("--db", shop.database)
    run_id, other = shop.enqueue("looks", "hello"), shop.enqueue("looks", "hello", "other")
    listed = json.loads(kantan_agents("runs", "list", "--json", *db).stdout)
    assert [(one["run_id"], one["status"], one["queue"]) for one in listed] == [
        (other, "queued", "other"),
        (run_id, "queued", "support"),
    ]
    assert other in kantan_agents("runs", "list", "--queue", "other", *db).stdout
    assert kantan_agents("runs", "list", "--status", "failed", *db).stdout == "No such runs.\n"
    assert kantan_agents("runs", "cancel", run_id, *db).stdout == f"{run_id}: cancelled\n"
    again = kantan_agents("runs", "cancel", run_id, *db)
    assert (again.code, "[E157]" in again.stderr) == (1, True)
    assert run_id in kantan_agents("runs", "list", "--status", "cancelled", *db).stdout
    assert kantan_agents("runs", "resume", run_id, *db).stdout == f"{run_id}: queued again\n"
    refused = kantan_agents("runs", "resume", run_id, *db)
    assert (refused.code, "[E157]" in refused.stderr) == (1, True)
    with shop.worker("--keep-events"):
        shop.wait_for(run_id, "finished")
        followed = kantan_agents("runs", "events", run_id, "--follow", *db)
    shown = kantan_agents("runs", "show", run_id, *db).stdout
    assert "finished" in shown
    assert "Hello." in shown
    events = [json.loads(line) for line in followed.stdout.splitlines()]
    assert [one["sequence"] for one in events] == list(range(1, len(events) + 1))
    assert events[-1]["event"]["type"] == "run_finished"
    rest = kantan_agents("runs", "events", run_id, "--after", "1", *db).stdout
    assert [json.loads(line) for line in rest.splitlines()] == events[1:]
    assert "--keep-events" in kantan_agents("runs", "events", other, *db).stderr


def test_as_json_all_runs_are_listed(shop: Shop, kantan_agents: Invoke) -> None:
    db = ("--db", shop.database)
    ids = {shop.enqueue("looks", "hello") for _ in range(21)}
    listed = json.loads(kantan_agents("runs", "list", "--json", *db).stdout)
    assert {one["run_id"] for one in listed} == ids
    assert len(kantan_agents("runs", "list", *db).stdout.splitlines()) == 21  # with the header
    assert json.loads(kantan_agents("runs", "list", "--status", "waiting", "--json", *db).stdout) == []


class Evil:
    """Makes a folder when it is read from a pickle."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (self.path,)


@pytest.mark.slow
def test_a_pickle_in_a_database_is_not_read(shop: Shop, kantan_agents: Invoke, tmp_path: Path) -> None:
    run_id = shop.enqueue("looks", "hello")
    written = base64.b64encode(pickle.dumps(Evil(tmp_path / "pwned"))).decode()
    with closing(sqlite3.connect(tmp_path / "durable.sqlite3")) as connection, connection:
        connection.execute("UPDATE workflow_status SET serialization = 'py_pickle'")
        # Versions of DBOS have it in one table or the other.
        for table in ("workflow_status", "workflow_input"):
            with suppress(sqlite3.OperationalError):
                connection.execute(f"UPDATE {table} SET inputs = ?", [written])
    for command in (["list"], ["show", run_id], ["cancel", run_id], ["resume", run_id]):
        kantan_agents("runs", *command, "--db", shop.database)
    other = shop.enqueue("looks", "hello")
    with shop.worker():
        shop.wait_for(other, "finished")
    assert not (tmp_path / "pwned").exists()


def test_the_default_database_is_no_link(
    kantan_agents: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "away").touch()
    (tmp_path / "durable.sqlite3").symlink_to(tmp_path / "away")
    outcome = kantan_agents("runs", "list")
    assert (outcome.code, "[E156]" in outcome.stderr) == (2, True)
    assert "it is a symbolic link" in outcome.stderr
    assert (tmp_path / "away").read_bytes() == b""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["show", "missing"], "[E154]"),
        (["cancel", "missing"], "[E154]"),
        (["resume", "missing"], "[E154]"),
        (["events", "missing"], "[E154]"),
        (["list", "--status", "lost"], "[E75]"),
        (["list", "--limit", "0"], "Invalid value for '--limit'"),
        (["events", "missing", "--after", "-1"], "[E75] Invalid option --after"),
    ],
)
def test_a_bad_argument_is_one_line_and_exit_code_2(
    kantan_agents: Invoke, tmp_path: Path, arguments: list[str], text: str
) -> None:
    path = tmp_path / "durable.sqlite3"
    path.touch()
    outcome = kantan_agents("runs", *arguments, "--db", str(path))
    assert (outcome.code, outcome.stdout, outcome.stderr.count("\n")) == (2, "", 1)
    assert text in outcome.stderr


def test_the_environment_names_the_database(
    kantan_agents: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KANTAN_AGENTS_DURABLE_DB", str(tmp_path / "none.sqlite3"))
    outcome = kantan_agents("runs", "list")
    assert (outcome.code, "none.sqlite3 for durable runs: there is no such file" in outcome.stderr) == (
        2,
        True,
    )
    assert not (tmp_path / "none.sqlite3").exists()
    (tmp_path / "none.sqlite3").touch()
    assert kantan_agents("runs", "list").stdout == "No runs.\n"
