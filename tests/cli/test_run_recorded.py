"""``kantan-agents run`` records by default, in the database that ``kantan-agents traces`` reads."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.testing import OfflineServer, Reply

WARNING = "warning: the run is not recorded: "


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and no database in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KANTAN_AGENTS_DB")
    return tmp_path


@pytest.fixture
def ask(kantan_agents: Any, serve: Any) -> Any:
    """Run one question against a model that answers ``ok``."""

    def run(*options: str) -> Any:
        with serve(["ok"]):
            return kantan_agents("run", "hi there", *options)

    return run


class TestOneRule:
    def test_show_last_works_after_a_run(self, kantan_agents: Any, ask: Any, folder: Path) -> None:
        outcome = ask()
        assert (outcome.code, outcome.stdout, outcome.stderr) == (0, "ok\n", "")
        shown = kantan_agents("traces", "show", "LAST")
        assert (shown.code, shown.stderr) == (0, "")
        assert "hi there" in shown.stdout
        assert [path.name for path in folder.iterdir() if "-" not in path.name] == ["traces.sqlite3"]

    @pytest.mark.parametrize("by", ["default", "environment", "option"])
    def test_every_command_uses_the_same_database(
        self, kantan_agents: Any, ask: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, by: str
    ) -> None:
        path = folder / {"default": "traces.sqlite3"}.get(by, "mine.sqlite3")
        option = ["--db", str(path)] if by == "option" else []
        if by == "environment":
            monkeypatch.setenv("KANTAN_AGENTS_DB", str(path))
        if by == "option":
            monkeypatch.setenv("KANTAN_AGENTS_DB", str(folder / "other.sqlite3"))
        trace_id = json.loads(ask("--json", *option).stdout)["result"]["trace_id"]
        assert {item.name for item in folder.iterdir() if "-" not in item.name} == {path.name}
        for command in (["list"], ["search", "hi"], ["show", "LAST"], ["export"]):
            assert trace_id[-8:] in kantan_agents("traces", *command, *option).stdout

    def test_the_help_of_each_command_names_the_rule(self, kantan_agents: Any) -> None:
        for command in (
            ["run"],
            *(["traces", name] for name in ("list", "show", "search", "prompts", "failed", "tail", "export")),
        ):
            shown = " ".join(kantan_agents(*command, "--help").stdout.replace("│", " ").split())
            assert "[env var: KANTAN_AGENTS_DB]" in shown, command
            assert "[default: traces.sqlite3]" in shown, command

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
    def test_the_file_is_for_its_owner_only(self, ask: Any, folder: Path) -> None:
        before = os.umask(0)
        try:
            assert ask().code == 0
        finally:
            os.umask(before)
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}

    def test_a_failed_run_is_recorded(self, kantan_agents: Any, serve: Any, folder: Path) -> None:
        with serve([Reply("no", status=401)]):
            assert kantan_agents("run", "hi").code == 1
        (run,) = json.loads(kantan_agents("traces", "list", "--errors", "--json").stdout)
        assert run["input"] == "hi"

    def test_mistakes_in_the_arguments_leave_no_file(self, kantan_agents: Any, folder: Path) -> None:
        assert kantan_agents("run", "hi", "--model", "foo").code == 2
        assert kantan_agents("run", "").code == 2
        assert list(folder.iterdir()) == []


class TestUnwritable:
    """A database that nobody named on the command line does not stop the run."""

    def is_answered(self, outcome: Any, reason: str) -> None:
        assert (outcome.code, outcome.stdout) == (0, "ok\n")
        assert outcome.stderr.startswith(WARNING)
        assert reason in outcome.stderr
        assert outcome.stderr.count("\n") == 1

    def test_a_directory_that_does_not_exist(
        self, ask: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KANTAN_AGENTS_DB", str(folder / "nowhere" / "t.sqlite3"))
        self.is_answered(ask(), "[E79] Cannot use ")
        assert json.loads(ask("--json").stdout)["result"]["trace_id"] is None

    def test_a_file_that_is_not_a_trace_database(self, ask: Any, folder: Path) -> None:
        notes = folder / "traces.sqlite3"
        notes.write_text("no database\n" * 100)
        self.is_answered(ask(), "file is not a database")
        assert notes.read_text() == "no database\n" * 100

    def test_the_database_of_another_program(self, ask: Any, folder: Path) -> None:
        with closing(sqlite3.connect(folder / "traces.sqlite3")) as connection, connection:
            connection.execute("CREATE TABLE songs (x TEXT)")
        self.is_answered(ask(), "it is the database of another program")

    def test_a_locked_database(self, ask: Any, folder: Path) -> None:
        assert ask().code == 0
        with closing(sqlite3.connect(folder / "traces.sqlite3")) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            self.is_answered(ask(), "database is locked")

    def test_a_database_lost_during_the_run(self, kantan_agents: Any, serve: Any, folder: Path) -> None:
        path = folder / "traces.sqlite3"

        def put_a_directory_there(_request: Any) -> str:
            while not path.is_dir():  # the recorder may make the file at the same moment
                path.unlink(missing_ok=True)
                with suppress(FileExistsError):
                    path.mkdir()
            return "ok"

        with serve(put_a_directory_there):
            outcome = kantan_agents("run", "hi")
        self.is_answered(outcome, "the run could not be recorded in it")

    def test_a_run_that_also_fails_shows_its_own_error_last(
        self, kantan_agents: Any, serve: Any, folder: Path
    ) -> None:
        (folder / "traces.sqlite3").mkdir()
        with serve([Reply("no", status=401)]):
            outcome = kantan_agents("run", "hi")
        warning, error = outcome.stderr.splitlines()
        assert (outcome.code, error) == (1, "error: [openai][401] no")
        assert warning.startswith(WARNING)

    def test_a_database_named_on_the_command_line_is_required(
        self, kantan_agents: Any, serve: Any, folder: Path
    ) -> None:
        with serve() as server:
            outcome = kantan_agents("run", "hi", "--db", str(folder))
        assert (outcome.code, outcome.stdout) == (2, "")
        assert outcome.stderr.startswith("error: [kantan-agents][E79] ")
        assert server.requests == []


class TestTurnedOff:
    def test_tracing_disabled_in_the_environment_disables_recording_and_says_so(
        self, process: Any, folder: Path
    ) -> None:
        disabled = {"OPENAI_AGENTS_DISABLE_TRACING": "1"}
        with OfflineServer(["ok", "ok", "ok"]) as server:
            outcome = process("run", "hi", env={**server.environment(), **disabled})
            assert (outcome.code, outcome.stdout) == (0, "ok\n")
            assert outcome.stderr == f"{WARNING}OPENAI_AGENTS_DISABLE_TRACING is set\n"
            outcome = process("run", "hi", "--no-record", env={**server.environment(), **disabled})
            assert outcome.stderr == ""
            assert list(folder.iterdir()) == []
            outcome = process("run", "hi", "--db", "t.sqlite3", env={**server.environment(), **disabled})
        assert (outcome.code, outcome.stderr) == (0, "")
        with closing(sqlite3.connect(folder / "t.sqlite3")) as connection:
            assert connection.execute("SELECT count(*) FROM traces").fetchone() == (1,)

    def test_no_record_and_a_database_contradict_each_other(self, kantan_agents: Any, folder: Path) -> None:
        outcome = kantan_agents("run", "hi", "--no-record", "--db", "t.sqlite3")
        assert outcome.code == 2
        assert outcome.stderr == (
            "error: [kantan-agents][E75] Invalid option --no-record: cannot be combined with --db\n"
        )
        assert list(folder.iterdir()) == []
