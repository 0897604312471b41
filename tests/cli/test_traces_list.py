"""``kantan-agents traces list``: the newest runs, filters, the database, help."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import IO, Any

import pytest
from rich.cells import cell_len

from tests.cli.conftest import ARGUMENTS, PROGRAM
from tests.cli.imports import assert_none_imports_the_sdk
from tests.cli.recorded_runs import MARKUP, WIDE, Recorded
from tests.programs import Preloaded

COMMANDS = ("list", "show", "search", "prompts", "failed", "tail", "export", "prune")


class TestHelp:
    def test_the_group_shows_its_commands(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("traces")
        assert (outcome.code, outcome.stderr) == (0, "")
        for command in COMMANDS:
            assert f"│ {command} " in outcome.stdout
        assert "│ traces " in kantan_agents("--help").stdout

    @pytest.mark.parametrize("command", [[], *([command] for command in COMMANDS)])
    def test_it_fits_80_columns(self, kantan_agents: Any, command: list[str]) -> None:
        outcome = kantan_agents("traces", *command, "--help")
        assert outcome.code == 0
        assert max(map(len, outcome.stdout.splitlines())) <= 80
        assert not command or "Exit codes: " in outcome.stdout

    def test_commands_without_a_database_do_not_import_the_sdk(self, tmp_path: Path) -> None:
        commands = [
            ["--help"],
            ["list", "--help"],
            ["list", "--db", "none.sqlite3"],
            ["show", "LAST", "--db", "none.sqlite3"],
            ["list", "--since", "never"],
            ["prune"],
        ]
        assert_none_imports_the_sdk([["traces", *command] for command in commands], cwd=tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_commands_that_only_read_do_not_import_the_sdk(self, shop: Recorded) -> None:
        program = (
            "import sys; from kantan_agents.cli.app import invoke; "
            "commands = ['list'], ['show', 'LAST'], ['search', 'a'], ['prompts'], ['failed'], ['export']; "
            f"codes = [invoke(['traces', *command, '--db', {str(shop.path)!r}]) for command in commands]; "
            "sys.exit(any(codes) or 'agents' in sys.modules)"
        )
        finished = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
        assert (finished.returncode, finished.stderr) == (0, b"")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["show"], "Missing argument 'ID'; see kantan-agents traces show --help"),
            (["search"], "Missing argument 'WORDS'; see kantan-agents traces search --help"),
            (["list", "--limit", "0"], "Invalid value for '--limit'"),
            (["list", "--rubric-below", "low"], "Invalid value for '--rubric-below'"),
            (["prune", "--keep", "-1"], "Invalid value for '--keep'"),
            (["bogus"], "No such command 'bogus'; see kantan-agents traces --help"),
        ],
    )
    def test_mistakes_in_the_arguments(self, kantan_agents: Any, arguments: list[str], message: str) -> None:
        kantan_agents("traces", *arguments).is_one_error(f"[usage] {message}")


class TestDatabase:
    @pytest.mark.parametrize(
        "command", [["list"], ["show", "LAST"], ["search", "x"], ["prompts"], ["failed"]]
    )
    def test_a_missing_database(self, kantan_agents: Any, tmp_path: Path, command: list[str]) -> None:
        path = tmp_path / "none.sqlite3"
        outcome = kantan_agents("traces", *command, "--db", str(path))
        outcome.is_one_error(
            f"[E60] Trace database cannot be used: {path}: "
            "there is no such file; name another with --db or KANTAN_AGENTS_DB"
        )
        assert not path.exists()

    def test_an_impossible_file_name(self, kantan_agents: Any) -> None:
        for command in ("list", "tail"):
            kantan_agents("traces", command, "--db", "x" * 5000).is_one_error("[E60] ")

    def test_a_file_that_is_not_a_database(self, kantan_agents: Any, tmp_path: Path) -> None:
        kantan_agents("traces", "list", "--db", str(tmp_path)).is_one_error("[E60] ")
        notes = tmp_path / "notes.txt"
        notes.write_text("no database, whatever it is called\n" * 100)
        kantan_agents("traces", "list", "--db", str(notes)).is_one_error("[E60] ")
        assert notes.read_text().startswith("no database")
        other = tmp_path / "other.sqlite3"
        with closing(sqlite3.connect(other)) as connection, connection:
            connection.execute("CREATE TABLE songs (x TEXT)")
        kantan_agents("traces", "list", "--db", str(other)).is_one_error("[E60] ")

    def test_the_default_database_is_in_the_current_directory(
        self, kantan_agents: Any, shop: Recorded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("KANTAN_AGENTS_DB", raising=False)
        monkeypatch.chdir(shop.path.parent)
        assert shop.ids["v1"][-8:] in kantan_agents("traces", "list").stdout

    def test_an_environment_variable_names_the_database(
        self, kantan_agents: Any, shop: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("KANTAN_AGENTS_DB", str(shop.path))
        assert shop.ids["v1"][-8:] in kantan_agents("traces", "list").stdout
        monkeypatch.setenv("KANTAN_AGENTS_DB", "")
        kantan_agents("traces", "list").is_one_error("[E60] ")

    def test_reading_does_not_change_the_database(self, kantan_agents: Any, shop: Recorded) -> None:
        before = shop.path.read_bytes()
        for command in (["list"], ["show", "LAST"], ["search", "order"], ["prompts"], ["failed"], ["export"]):
            assert kantan_agents("traces", *command, "--db", str(shop.path)).code == 0
        assert shop.path.read_bytes() == before
        assert [path.name for path in shop.path.parent.iterdir()] == [shop.path.name]

    def test_an_empty_database_is_reported_as_such(self, kantan_agents: Any, database: Any) -> None:
        assert database.traces() == []  # creates the tables
        for command, said in (
            (["list"], "The database holds no runs.\n"),
            (["list", "--agent", "x"], "No run passes these filters.\n"),
            (["search", "x"], "No run found.\n"),
            (["prompts"], "The database holds no runs of any prompt.\n"),
            (["prompts", "a\nb"], "No run of prompt a b found.\n"),
            (["failed"], "No verdict below 0.5 found.\n"),
            (["export"], ""),
        ):
            outcome = kantan_agents("traces", *command, "--db", str(database.path))
            assert (outcome.code, outcome.stdout, outcome.stderr) == (0, said, "")
        for name in ("list", "prompts", "failed"):
            assert kantan_agents("traces", name, "--json", "--db", str(database.path)).stdout == "[]\n"
        kantan_agents("traces", "show", "LAST", "--db", str(database.path)).is_one_error("[E61] ")


class TestRows:
    def test_a_process_lists_the_newest_first_without_cutting(
        self, process: Any, shop: Recorded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("COLUMNS")
        outcome = process("traces", "list", "--db", str(shop.path))
        assert (outcome.code, outcome.stderr) == (0, "")
        head, *rows = outcome.stdout.splitlines()
        assert head.split() == [
            "trace", "started", "took", "tokens", "status", "agent", "prompt", "version", "input",
        ]  # fmt: skip
        names = ["open", "items", "wide", "plain", "good", "bad", "failed", "v2", "v1"]
        assert [row.split()[0] for row in rows] == [shop.ids[name] for name in names]
        first = rows[-1].split()
        assert first[-7:] == ["support", "support", "v1", "Where", "is", "order", "4711?"]
        assert first[-9:-7] == ["30", "ok"]
        assert "Error code: 400" in rows[6]
        assert "\x1b" not in outcome.stdout

    def test_times_are_local(
        self, kantan_agents: Any, shop: Recorded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (run,) = json.loads(
            kantan_agents("traces", "list", "--limit", "1", "--json", "--db", shop.path.as_posix()).stdout
        )
        started = datetime.fromisoformat(run["started_at"])
        assert started.utcoffset() == timedelta(0)
        local = started.astimezone()
        shown = kantan_agents("traces", "list", "--limit", "1", "--db", str(shop.path)).stdout
        assert local.strftime(" %m-%d %H:%M ") in shown or local.strftime(" %Y-%m-%d ") in shown
        monkeypatch.delenv("COLUMNS")
        shown = kantan_agents("traces", "list", "--limit", "1", "--db", str(shop.path)).stdout
        assert local.strftime(" %Y-%m-%d %H:%M:%S ") in shown

    @pytest.mark.parametrize("columns", [30, 60, 80, 120, 400])
    @pytest.mark.parametrize("command", [["list"], ["search", "a"]])
    def test_every_width(
        self,
        kantan_agents: Any,
        shop: Recorded,
        monkeypatch: pytest.MonkeyPatch,
        columns: int,
        command: list[str],
    ) -> None:
        monkeypatch.setenv("COLUMNS", str(columns))
        outcome = kantan_agents("traces", *command, "--db", str(shop.path))
        assert outcome.code == 0
        assert max(map(cell_len, outcome.stdout.splitlines())) <= columns
        assert shop.ids["v1"][-8:] in outcome.stdout

    def test_wide_characters_are_aligned(
        self, kantan_agents: Any, shop: Recorded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        outcome = kantan_agents("traces", "list", "--no-errors", "--db", str(shop.path))
        head, *rows = outcome.stdout.splitlines()
        column = head.index("input")
        (wide,) = (row for row in rows if "天気予報" in row)
        assert cell_len(wide[: wide.index(WIDE[:10])]) == column

    @pytest.mark.parametrize("columns", [61, 80, 100, 120])
    @pytest.mark.parametrize("database", ["shop", "hostile"])
    def test_at_the_usual_widths_it_is_an_aligned_table(
        self, kantan_agents: Any, request: Any, monkeypatch: pytest.MonkeyPatch, columns: int, database: str
    ) -> None:
        path = request.getfixturevalue(database).path
        monkeypatch.setenv("COLUMNS", str(columns))
        head, *rows = kantan_agents("traces", "list", "--db", str(path)).stdout.splitlines()
        assert head.split()[:2] == ["trace", "started"]
        assert {"status", "agent", "input"} < set(head.split())
        if database == "shop" and columns >= 80:
            assert {"took", "tokens"} < set(head.split())
        assert len(rows) == len(request.getfixturevalue(database).ids)
        gaps = [head.index(label) - 1 for label in ("started", "status", "agent", "input")]
        for row in rows:
            cells = "".join(character * cell_len(character) for character in row)  # one character per column
            assert cell_len(row) <= columns
            assert {cells[gap : gap + 1] for gap in gaps} == {" "}, row

    def test_the_id_that_is_listed_can_be_shown(self, kantan_agents: Any, shop: Recorded) -> None:
        _, *rows = kantan_agents("traces", "list", "--db", str(shop.path)).stdout.splitlines()
        for row, trace_id in zip(rows, sorted(shop.ids.values(), reverse=True), strict=True):
            shown = kantan_agents("traces", "show", row.split()[0], "--db", str(shop.path))
            assert (shown.code, shown.stderr) == (0, "")
            assert trace_id in shown.stdout

    def test_every_line_in_a_pipe_has_the_same_cells(
        self, kantan_agents: Any, shop: Recorded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("COLUMNS")
        for command in (["list"], ["list", "--agent", "assistant"], ["search", "a"]):
            outcome = kantan_agents("traces", *command, "--db", str(shop.path))
            head, *rows = [re.split(r" {2,}", line) for line in outcome.stdout.splitlines()]
            assert head[:8] == [
                "trace", "started", "took", "tokens", "status", "agent", "prompt", "version",
            ]  # fmt: skip
            assert {len(row) for row in rows} == {len(head)}

    def test_errors_lists_failed_runs_and_failed_spans_those_that_recovered_too(
        self, kantan_agents: Any, mixed: Recorded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("COLUMNS")
        names = {trace_id: name for name, trace_id in mixed.ids.items()}

        def listed(*options: str) -> dict[str, str]:
            outcome = kantan_agents("traces", "list", "--db", str(mixed.path), *options)
            cells = [re.split(r" {2,}", line) for line in outcome.stdout.splitlines()]
            assert outcome.code == 0
            return {names[row[0]]: row[4].split()[0] for row in cells if row[0] in names}

        assert listed("--errors") == {"failed": "Error"}
        assert listed("--failed-spans") == {
            "failed": "Error",
            "recovered": "recovered",
            "hidden": "recovered",
        }
        assert listed("--no-errors") == {
            "fine": "ok",
            "recovered": "recovered",
            "hidden": "recovered",
            "refused": "ok",
        }
        assert listed("--failed-spans", "--no-errors").keys() == {"recovered", "hidden"}
        assert listed("--denied").keys() == {"hidden", "refused"}
        assert listed("--denied", "--tool", "look_up_order").keys() == {"hidden", "refused"}
        assert listed("--denied", "--errors") == {}

    def test_the_last_question_of_a_list_of_items_is_shown(
        self, kantan_agents: Any, shop: Recorded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "100")
        outcome = kantan_agents("traces", "list", "--agent", "assistant", "--db", str(shop.path))
        assert "And the second question?" in outcome.stdout
        assert '"role"' not in outcome.stdout

    def test_colours_on_a_terminal_only(
        self, kantan_agents: Any, shop: Recorded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert "\x1b" not in kantan_agents("traces", "list", "--db", str(shop.path)).stdout
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
        assert "\x1b[" in kantan_agents("traces", "list", "--db", str(shop.path)).stdout

    def test_hostile_texts_are_texts(
        self, kantan_agents: Any, hostile: Recorded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for columns in ("60", "200"):
            monkeypatch.setenv("COLUMNS", columns)
            outcome = kantan_agents("traces", "list", "--db", str(hostile.path))
            assert (outcome.code, outcome.stderr) == (0, "")
            assert not {"\x1b", "\x07", "\x9b", "\x7f", "\r", "\u2028"} & set(outcome.stdout)
            assert "[bold red]x[/]" in outcome.stdout
            lines = outcome.stdout.splitlines()
            assert max(map(cell_len, lines)) <= int(columns)
            assert len(lines) <= 3 * 6

    def test_a_run_with_hostile_texts_is_one_line_in_a_pipe(
        self, process: Any, hostile: Recorded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("COLUMNS")
        outcome = process("traces", "list", "--db", str(hostile.path))
        assert (outcome.code, outcome.stderr) == (0, "")
        assert len(outcome.stdout.splitlines()) == 1 + 3
        assert MARKUP[:20] in outcome.stdout


class TestJson:
    def test_one_array_of_flat_objects(self, kantan_agents: Any, shop: Recorded) -> None:
        outcome = kantan_agents("traces", "list", "--json", "--db", str(shop.path))
        assert outcome.stdout.count("\n") == 1
        runs = json.loads(outcome.stdout)
        assert len(runs) == 9
        first = runs[-1]
        assert first["trace_id"] == shop.ids["v1"]
        assert first["agent_run_id"] == shop.ids["v1"].removeprefix("trace_")
        assert (first["agent_name"], first["prompt_name"], first["prompt_version"]) == (
            "support",
            "support",
            "v1",
        )
        assert (first["input"], first["output"], first["error"]) == (
            "Where is order 4711?",
            "It is on its way.",
            None,
        )
        assert (first["input_tokens"], first["output_tokens"], first["total_tokens"]) == (20, 10, 30)
        assert first["duration"] > 0
        assert "spans" not in first
        assert runs[6]["error"].startswith("Error code: 400")
        assert runs[5]["rubric"]["score"] == 0.2

    def test_hostile_texts(self, kantan_agents: Any, hostile: Recorded) -> None:
        outcome = kantan_agents("traces", "list", "--json", "--db", str(hostile.path))
        assert not {"\x1b", "\x07", "\x9b", "\x7f", "\u2028", "\ud83d"} & set(outcome.stdout)
        runs = json.loads(outcome.stdout)
        assert runs[0]["metadata"]["half"] == "\ufffd"
        assert "\x1b[2J" in runs[0]["input"]

    def test_numbers_that_json_does_not_have(self, kantan_agents: Any, database: Any) -> None:
        database.traces()
        with closing(sqlite3.connect(database.path)) as connection, connection:
            connection.execute(
                "INSERT INTO traces VALUES ('trace_x', 'w', NULL, '{\"a\": NaN, \"b\": Infinity}')"
            )
        outcome = kantan_agents("traces", "list", "--json", "--db", str(database.path))
        (run,) = json.loads(outcome.stdout, parse_constant=pytest.fail)
        assert run["metadata"] == {"a": None, "b": None}


class TestFilters:
    def found(self, kantan_agents: Any, shop: Recorded, *options: str) -> set[str]:
        outcome = kantan_agents("traces", "list", "--json", "--db", str(shop.path), *options)
        assert (outcome.code, outcome.stderr) == (0, "")
        names = {trace_id: name for name, trace_id in shop.ids.items()}
        return {names[run["trace_id"]] for run in json.loads(outcome.stdout)}

    @pytest.mark.parametrize(
        ("options", "names"),
        [
            (["--agent", "support"], {"v1", "v2", "failed"}),
            (["--agent", "天気予報"], {"wide"}),
            (["--agent", "sup"], set()),
            (["--prompt", "support"], {"v1", "v2", "failed", "open"}),
            (["--prompt", "support", "--version", "v2"], {"v2", "failed", "open"}),
            (["--version", "v1"], {"v1", "bad", "good"}),
            (["--tool", "look_up_order"], {"v1"}),
            (["--errors"], {"failed"}),
            (["--no-errors", "--version", "v2"], {"v2", "open"}),
            (["--rubric-below", "0.5"], {"bad"}),
            (["--rubric-below", "1"], {"bad", "good"}),
            (["--limit", "2"], {"open", "items"}),
            (["--meta", "tenant=acme"], {"plain"}),
            (["--meta", "tenant=acme", "--meta", "count=42"], {"plain"}),
            (["--meta", "tenant=acme", "--meta", "count=43"], set()),
            (["--meta", "count=42.0"], {"plain"}),
            (["--meta", 'count="42"'], set()),
            (["--meta", 'text="42"'], {"plain"}),
            (["--meta", "beta=true"], {"plain"}),
            (["--meta", "a.b=dotted"], {"plain"}),
            (["--meta", "tenant=a=b"], set()),
            (["--meta", "tenant=[1]"], set()),
            (["--meta", "tenant=NaN"], set()),
            (["--meta", f"tenant={10**30}"], set()),
            (["--meta", "tenant=1e999"], set()),
        ],
    )
    def test_each_filter(
        self, kantan_agents: Any, shop: Recorded, options: list[str], names: set[str]
    ) -> None:
        assert self.found(kantan_agents, shop, *options) == names

    def test_since_and_until(self, kantan_agents: Any, shop: Recorded) -> None:
        every = set(shop.ids)
        assert self.found(kantan_agents, shop, "--since", "2h") == every
        assert self.found(kantan_agents, shop, "--since", "30d ago") == every
        assert self.found(kantan_agents, shop, "--until", "1.5h") == set()
        tomorrow = datetime.now(timezone.utc).astimezone() + timedelta(days=1)
        assert self.found(kantan_agents, shop, "--since", tomorrow.date().isoformat()) == set()
        assert self.found(kantan_agents, shop, "--until", tomorrow.isoformat()) == every
        zulu = tomorrow.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        assert self.found(kantan_agents, shop, "--until", zulu) == every
        (run,) = json.loads(
            kantan_agents("traces", "list", "--limit", "1", "--json", "--db", str(shop.path)).stdout
        )
        assert self.found(kantan_agents, shop, "--since", run["started_at"]) == {"open"}

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--meta", "tenant"], "[E75] Invalid option --meta: must be KEY=VALUE, not 'tenant'"),
            (["--meta", "=x"], "[E75] Invalid option --meta: must be KEY=VALUE, not '=x'"),
            (["--meta", "a=1", "--meta", "a=2"], "[E75] Invalid option --meta: 'a' is given twice"),
            (["--since", "tomorrow"], "[E75] Invalid option --since: must be a duration such as 2h"),
            (["--since", ""], "[E75] Invalid option --since: "),
            (["--until", "99999999999d"], "[E75] Invalid option --until: "),
            (["--since", "0001-01-01T00:00:00+05:00"], "[E75] Invalid option --since: "),
            (["--rubric-below", "nan"], "[E75] Invalid option --rubric-below: must be a finite number"),
        ],
    )
    def test_filters_that_cannot_be_read(
        self, kantan_agents: Any, shop: Recorded, options: list[str], message: str
    ) -> None:
        kantan_agents("traces", "list", "--db", str(shop.path), *options).is_one_error(message)


def test_the_steps_of_the_documentation_page(
    kantan_agents: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert kantan_agents("demo", "--db", "t.sqlite3").code == 0
    monkeypatch.setenv("COLUMNS", "120")
    listed = kantan_agents("traces", "list", "--db", "t.sqlite3")
    assert (listed.code, listed.stderr) == (0, "")
    assert "support-answer" in listed.stdout
    shown = kantan_agents("traces", "show", "LAST", "--db", "t.sqlite3")
    assert (shown.code, shown.stderr) == (0, "")
    assert "answer-quality v1" in shown.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["t.sqlite3"]


@pytest.fixture
def closed_pipe() -> Iterator[IO[bytes]]:
    """The end for writing of a pipe whose reader has closed the other one."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        yield pipe


@pytest.mark.parametrize(
    "command",
    [
        ["list"],
        ["list", "--json"],
        ["show", "LAST"],
        ["show", "LAST", "--json"],
        ["search", "a"],
        ["prompts", "--json"],
        ["failed"],
        ["export", "--json"],
    ],
)
def test_a_reader_that_closes_the_pipe_sees_no_error(
    shop: Recorded, preloaded: Preloaded, closed_pipe: IO[bytes], command: list[str]
) -> None:
    arguments = ["traces", *command, "--db", str(shop.path)]
    ended = preloaded.run([*ARGUMENTS, *arguments], stdout=closed_pipe)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_the_end_of_the_interpreter_says_nothing_about_a_closed_pipe(closed_pipe: IO[bytes]) -> None:
    command = [*PROGRAM, "traces", "--help"]
    ended = subprocess.run(command, stdout=closed_pipe, stderr=subprocess.PIPE, check=False, timeout=120)
    assert (ended.returncode, ended.stderr) == (1, b"")


@pytest.mark.parametrize(
    "command", [["list"], ["show", "LAST"], ["search", "a"], ["prompts"], ["failed"], ["export"]]
)
def test_json_in_a_pipe_is_one_value_on_each_line(
    kantan_agents: Any, shop: Recorded, hostile: Recorded, command: list[str]
) -> None:
    for path in (shop.path, hostile.path):
        outcome = kantan_agents("traces", *command, "--json", "--db", str(path))
        assert (outcome.code, outcome.stderr) == (0, "")
        for line in outcome.stdout.splitlines():
            json.loads(line, parse_constant=pytest.fail)


@pytest.mark.parametrize("command", [["list"], ["show", "LAST"], ["search", "a"], ["prompts"], ["failed"]])
def test_no_color_takes_colours_from_a_terminal_too(
    kantan_agents: Any, shop: Recorded, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    shown = kantan_agents("traces", *command, "--db", str(shop.path)).stdout
    assert not re.search(r"\x1b\[(?:\d+;)*(?:3|4|9|10)[0-8]", shown)
