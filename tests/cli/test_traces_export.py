"""``kantan-agents traces export``: JSON Lines to standard output or to a file that appears when complete."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import TraceStore
from tests.cli.recorded_runs import Recorded


def refused(outcome: Any, path: object, reason: str) -> None:
    assert (outcome.code, outcome.stdout) == (2, "")
    assert outcome.stderr == f"error: [kantan-agents][E79] Cannot use {path}: {reason}\n"


def test_a_line_is_a_run_with_its_spans(process: Any, shop: Recorded) -> None:
    outcome = process("traces", "export", "--db", str(shop.path))
    assert (outcome.code, outcome.stderr) == (0, "")
    runs = [json.loads(line) for line in outcome.stdout.splitlines()]
    assert len(runs) == 9
    oldest = runs[-1]
    assert oldest["trace_id"] == shop.ids["v1"]
    assert oldest["prompt_version"] == "v1"
    assert {span["span_type"] for span in oldest["spans"]} >= {"agent", "function", "generation"}


def test_json_a_dash_and_a_file_give_the_same_lines(
    kantan_agents: Any, shop: Recorded, tmp_path: Path
) -> None:
    target = tmp_path / "runs.jsonl"
    command = ("traces", "export", "--db", str(shop.path))
    printed = kantan_agents(*command).stdout
    assert kantan_agents(*command, "--json").stdout == printed
    assert kantan_agents(*command, "--output", "-").stdout == printed
    outcome = kantan_agents(*command, "--output", str(target))
    assert (outcome.code, outcome.stdout) == (0, "")
    assert outcome.stderr == f"9 runs written to {target}\n"
    assert target.read_text(encoding="utf-8") == printed
    assert list(tmp_path.iterdir()) == [target]


def test_filters_and_limit(kantan_agents: Any, shop: Recorded) -> None:
    def exported(*options: str) -> list[str]:
        outcome = kantan_agents("traces", "export", "--db", str(shop.path), *options)
        return [json.loads(line)["trace_id"] for line in outcome.stdout.splitlines()]

    assert exported("--version", "v2", "--no-errors") == [shop.ids["open"], shop.ids["v2"]]
    assert exported("--limit", "1") == [shop.ids["open"]]
    assert exported("--meta", "tenant=nobody") == []


def test_each_run_is_one_line_on_a_terminal_too(
    kantan_agents: Any, hostile: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _self: True)
    outcome = kantan_agents("traces", "export", "--db", str(hostile.path))
    assert not {"\x1b", "\x07", "\x9b", "\x7f", "\u2028", "\ud83d"} & set(outcome.stdout)
    runs = [json.loads(line) for line in outcome.stdout.splitlines()]
    assert [run["trace_id"] for run in runs] == [hostile.ids[name] for name in ("failed", "judge", "hostile")]
    assert runs[0]["error"].startswith("\ufffd\x1b[2J")


def test_numbers_that_json_does_not_have(kantan_agents: Any, database: Any) -> None:
    database.traces()
    with closing(sqlite3.connect(database.path)) as connection, connection:
        connection.execute("INSERT INTO traces VALUES ('trace_x', 'w', NULL, '{\"a\": NaN}')")
        rubric = '{"score": Infinity}'
        connection.execute(
            "INSERT INTO spans (id, trace_id, rubric_json) VALUES ('s', 'trace_x', ?)", (rubric,)
        )
    outcome = kantan_agents("traces", "export", "--db", str(database.path))
    run = json.loads(outcome.stdout, parse_constant=pytest.fail)
    assert run["metadata"] == {"a": None}
    assert run["spans"][0]["rubric"] == {"score": None}


class TestFile:
    def test_an_existing_file_is_only_replaced_with_force(
        self, kantan_agents: Any, shop: Recorded, tmp_path: Path
    ) -> None:
        target = tmp_path / "runs.jsonl"
        target.write_text("mine")
        target.chmod(0o640)
        command = ("traces", "export", "--db", str(shop.path), "--output", str(target))
        refused(kantan_agents(*command), target, "it exists already; --force replaces it")
        assert target.read_text() == "mine"
        assert kantan_agents(*command, "--force").code == 0
        assert len(target.read_text(encoding="utf-8").splitlines()) == 9
        assert target.stat().st_mode & 0o777 == 0o640

    def test_a_link_is_kept_and_its_target_written(
        self, kantan_agents: Any, shop: Recorded, tmp_path: Path
    ) -> None:
        target, link = tmp_path / "runs.jsonl", tmp_path / "link.jsonl"
        link.symlink_to(target)
        assert kantan_agents("traces", "export", "--db", str(shop.path), "--output", str(link)).code == 0
        assert link.is_symlink()
        assert target.is_file()

    def test_the_database_itself_is_never_overwritten(self, kantan_agents: Any, shop: Recorded) -> None:
        before = shop.path.read_bytes()
        command = ("traces", "export", "--force", "--db", str(shop.path), "--output", str(shop.path))
        refused(kantan_agents(*command), shop.path, "it is the trace database")
        assert shop.path.read_bytes() == before

    def test_impossible_output_paths(self, kantan_agents: Any, shop: Recorded, tmp_path: Path) -> None:
        def outcome(path: object) -> Any:
            return kantan_agents("traces", "export", "--force", "--db", str(shop.path), "--output", str(path))

        refused(outcome(tmp_path), tmp_path, "it is not a regular file")
        nowhere = tmp_path / "nowhere" / "runs.jsonl"
        refused(outcome(nowhere), nowhere, "its directory does not exist")
        long = tmp_path / ("x" * 300)
        assert outcome(long).code == 2
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.skipif(not Path("/dev/null").exists(), reason="there is none")
    def test_a_device_is_not_replaced_by_a_file(self, kantan_agents: Any, shop: Recorded) -> None:
        command = ("traces", "export", "--force", "--db", str(shop.path), "--output", "/dev/null")
        refused(kantan_agents(*command), "/dev/null", "it is not a regular file")

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
    def test_a_failure_leaves_no_file(
        self,
        kantan_agents: Any,
        shop: Recorded,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        error: BaseException,
    ) -> None:
        def broken(_store: TraceStore, **_filters: Any) -> Any:
            yield {"trace_id": "one"}
            raise error

        monkeypatch.setattr(TraceStore, "export", broken)
        target = tmp_path / "runs.jsonl"
        outcome = kantan_agents("traces", "export", "--db", str(shop.path), "--output", str(target))
        assert outcome.code == (130 if isinstance(error, KeyboardInterrupt) else 2)
        assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_ends_the_program_quietly(
    kantan_agents: Any, shop: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", pipe)
        outcome = kantan_agents("traces", "export", "--db", str(shop.path))
    assert (outcome.code, outcome.stderr) == (1, "")
