"""``kantan-agents traces tail``: prints new runs when they end, until Ctrl-C or a closed pipe."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from kantan_agents import TraceStore
from kantan_agents.cli.traces.tail import RunLines
from tests.cli.recorded_runs import HOSTILE, ask, recording
from tests.programs import Program

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no SIGINT for another process there")

Tail = Callable[..., Program]


@pytest.fixture
def tail(start: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tail]:
    """``tail(path, "--json")`` follows a database; the fixture ends the process."""
    monkeypatch.delenv("COLUMNS")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # else a child ignores it
    started: list[Program] = []

    def run(path: Path, *options: str) -> Program:
        started.append(start("traces", "tail", "--db", str(path), *options, env={}))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()
    signal.signal(signal.SIGINT, before)


def interrupt(process: Program) -> tuple[bytes, bytes]:
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=60)


def record(path: Path, question: str) -> str:
    with recording(path):
        return ask("assistant", "Help.", question, ["Hello."])


def first_line(path: Path, process: Program, question: str) -> str:
    """Record the first run for a process that waits for its database; return what it prints."""
    assert process.stderr is not None
    assert process.stderr.readline().decode() == f"waiting for {path} ...\n"
    assert not path.exists()
    record(path, question)
    assert process.stdout is not None
    line: bytes = process.stdout.readline()
    return line.decode()


def test_new_runs_are_printed_until_ctrl_c(tail: Tail, tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite3"
    old = record(path, "from before")
    process = tail(path)
    lines: list[bytes] = []
    assert process.stdout is not None
    reader = Thread(target=lambda stream: lines.append(stream.readline()), args=(process.stdout,))
    reader.start()
    while reader.is_alive():  # the process needs time to start
        record(path, "hello")
        reader.join(0.5)
    assert lines[0].decode().split()[-6:] == ["15", "ok", "assistant", "assistant", "-", "hello"]
    stdout, stderr = interrupt(process)
    assert old.encode() not in lines[0] + stdout
    assert (process.returncode, stderr) == (130, b"")


def test_it_waits_for_a_database_that_does_not_exist_yet(tail: Tail, tmp_path: Path) -> None:
    path = tmp_path / "later.sqlite3"
    process = tail(path, "--json")
    run = json.loads(first_line(path, process, "the very first"))
    assert (run["input"], run["output"]) == ("the very first", "Hello.")
    assert process.stdout is not None
    second = record(path, "another")
    assert json.loads(process.stdout.readline())["trace_id"] == second
    assert interrupt(process) == (b"", b"")
    assert process.returncode == 130


def test_it_waits_for_tables_in_an_empty_file(tail: Tail, tmp_path: Path) -> None:
    path = tmp_path / "empty.sqlite3"
    path.touch()
    process = tail(path, "--json")
    assert process.stderr is not None
    assert process.stderr.readline().startswith(b"waiting for ")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE kantan_agents_another (x TEXT)")
    first = record(path, "hello")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["trace_id"] == first


def test_ctrl_c_while_it_waits(tail: Tail, tmp_path: Path) -> None:
    process = tail(tmp_path / "never.sqlite3")
    assert process.stderr is not None
    assert process.stderr.readline().startswith(b"waiting for ")
    assert interrupt(process) == (b"", b"")
    assert process.returncode == 130


def test_a_closed_pipe_ends_it_quietly(tail: Tail, tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite3"
    process = tail(path, "--json")
    assert first_line(path, process, "hello")
    assert process.stdout is not None
    process.stdout.close()
    record(path, "nobody reads this")
    assert process.wait(timeout=60) == 1
    assert process.stderr is not None
    assert process.stderr.read() == b""


def test_a_hostile_run_is_one_line(tail: Tail, tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite3"
    process = tail(path)
    line = first_line(path, process, HOSTILE)
    assert "[bold red]x[/]" in line
    assert not {"\x1b", "\x07", "\x9b", "\x7f", "\r", "\u2028"} & set(line)
    assert interrupt(process) == (b"", b"")


def test_a_file_that_is_not_a_database_is_an_error(kantan_agents: Any, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("no database\n" * 100)
    for path in (notes, tmp_path):
        outcome = kantan_agents("traces", "tail", "--db", str(path))
        assert (outcome.code, outcome.stdout) == (2, "")
        assert outcome.stderr.startswith("error: [kantan-agents][E60] ")


@pytest.mark.parametrize("database", ["shop", "hostile", "mixed"])
@pytest.mark.parametrize("width", [10, 40, 80, 120, 300])
def test_every_run_is_one_line_of_at_most_the_width_of_the_terminal(
    request: Any, database: str, width: int
) -> None:
    lines = RunLines(width)
    shown = [lines.line(trace) for trace in TraceStore(request.getfixturevalue(database).path).traces()]
    assert shown
    assert max(line.cell_len for line in shown) <= width
    assert not any("\n" in line.plain for line in shown)
