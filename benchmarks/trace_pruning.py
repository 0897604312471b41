"""Measures a large trace database: ``prompts``, a plan to prune, and a prune beside a writer.

    python -m benchmarks.trace_pruning [--spans 500000] [--folder DIR]

The file has six spans for each run and about 6 KB for each span, so 500,000 spans take 3 GB of disk space.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

from typing_extensions import Self

from kantan_agents.traces.ids import new_run_id, trace_id_of
from kantan_agents.traces.recorder import SQLiteRecorder
from kantan_agents.traces.store import TraceStore
from kantan_agents.traces.store.store_figures import keep_changed

_SPANS_OF_A_RUN = 6
_RUNS_AT_ONCE = 2_000
_PROMPTS, _VERSIONS = 20, 5
_JUDGED = 10  # every tenth run is judged
_START = datetime(2025, 1, 1, tzinfo=timezone.utc)
_TEXT_BYTES = 2_800
_SPAN = (
    "INSERT INTO spans(id, trace_id, parent_id, started_at, ended_at, span_type, name, input, output, "
    "rubric_json, usage_json, error_json, raw_json, ingest_seq) VALUES (?,?,?,?,?,?,?,?,?,?,?,'null',?,?)"
)


def main() -> None:
    """Create the file, measure, and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spans", type=int, default=500_000)
    parser.add_argument("--folder", type=Path, help="where to put the file; by default a temporary directory")
    parser.add_argument("--writer", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.writer:
        _write_until_asked(options.writer)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "traces.sqlite3"
        _say("seconds to create the file", _timed(lambda: generate(path, options.spans)))
        measure(path)


def measure(path: Path) -> None:
    """Print the figures of the file at ``path``, half of which is then pruned."""
    store = TraceStore(path)
    runs = _count(path, "traces")
    _say("spans", _count(path, "spans"))
    _say("bytes", _disk(path.parent))
    for _ in range(3):
        _say("prompts(), s", _timed(store.prompts))
    for _ in range(3):
        _say("a plan to prune half, s", _timed(lambda: store.prune(keep=runs // 2, dry_run=True)))
    with _Peak(path.parent) as peak, _Writer(path) as writer:
        _say("prune half, s", _timed(lambda: _say("result", store.prune(keep=runs // 2))))
    _say("peak of the disk, bytes", peak.highest)
    _say("longest wait for the lock, s", writer.result["lock"])
    _say("longest write, s", writer.result["longest"])
    _say("writes meanwhile", writer.result["writes"])
    _say("bytes afterwards", _disk(path.parent))


def generate(path: Path, spans: int) -> None:
    """Create a database as the recorder does, with about ``spans`` spans."""
    recorder = SQLiteRecorder(path)
    recorder.on_trace_start(_Exported({"id": "trace_first", "workflow_name": "w", "metadata": None}))
    recorder.shutdown()
    random = Random(7)
    text = "".join(random.choices("abcdefghij klmnopqrst uvwxyz", k=1_000_000))
    runs = spans // _SPANS_OF_A_RUN
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -500000")
        for start in range(0, runs, _RUNS_AT_ONCE):
            connection.execute("BEGIN")
            for number in range(start, min(start + _RUNS_AT_ONCE, runs)):
                trace, rows = _run(number, random, text)
                connection.execute("INSERT INTO traces VALUES (?,?,?,?)", trace)
                connection.executemany(_SPAN, rows)
            connection.execute("COMMIT")
    # As the recorder's writer does after its batches.
    _say("seconds to keep the figures", _timed(lambda: keep_changed(path, math.inf)))


def _run(number: int, random: Random, text: str) -> tuple[tuple[Any, ...], Iterator[tuple[Any, ...]]]:
    trace_id = trace_id_of(new_run_id())
    metadata = {
        "agent_run_id": trace_id[-32:],
        "agent_name": "support",
        "prompt_name": f"prompt {number % _PROMPTS}",
        "prompt_version": f"v{number // _PROMPTS % _VERSIONS}",
        "usage_total": {"input_tokens": 900, "output_tokens": 80, "total_tokens": 980},
    }
    usage = json.dumps({"input_tokens": 450, "output_tokens": 40, "total_tokens": 490})
    start = _START + timedelta(seconds=number)

    def spans() -> Iterator[tuple[Any, ...]]:
        kinds = (("response", None), ("function", "search"), ("response", None), ("agent", "support"))
        last = ("custom", "judge") if number % _JUDGED == 0 else ("custom", "note")
        for place, (kind, name) in enumerate((*kinds, last, ("generation", None))):
            begin = random.randrange(len(text) - 2 * _TEXT_BYTES)
            one, two = (
                text[begin : begin + _TEXT_BYTES // 2],
                text[begin + _TEXT_BYTES : begin + 2 * _TEXT_BYTES],
            )
            began = (start + timedelta(milliseconds=100 * place)).isoformat()
            ended = (start + timedelta(milliseconds=100 * place + random.randrange(90))).isoformat()
            yield (
                f"span_{random.getrandbits(96):024x}",
                trace_id,
                None if kind == "generation" else "span_parent",
                began,
                ended,
                kind,
                name,
                one,
                two,
                json.dumps({"score": random.random()}) if name == "judge" else None,
                usage if kind == "response" else None,
                json.dumps({"input": one, "output": two}),
                place + 1,
            )

    return (trace_id, "w", None, json.dumps(metadata)), spans()


class _Exported:
    def __init__(self, data: dict[str, Any]) -> None:
        self.data, self.trace_id = data, data["id"]

    def export(self) -> dict[str, Any]:
        return self.data


class _Peak:
    """The largest size of a folder while the block runs, unnamed temporary files of SQLite included."""

    def __init__(self, folder: Path) -> None:
        self.highest = 0
        self._folder = folder
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self.highest = max(self.highest, _disk(self._folder) + _unnamed_files())


class _Writer:
    """Another process that writes one span at a time while the block runs."""

    result: dict[str, Any]

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-m", "benchmarks.trace_pruning", "--writer", str(path)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        assert self._process.stdout
        self._process.stdout.readline()
        return self

    def __exit__(self, *_error: object) -> None:
        self.result = json.loads(self._process.communicate("\n")[0])


def _write_until_asked(path: Path) -> None:
    over = threading.Event()

    def wait() -> None:
        sys.stdin.readline()
        over.set()

    threading.Thread(target=wait, daemon=True).start()
    longest = lock = writes = 0.0
    random = Random()
    with closing(sqlite3.connect(path, isolation_level=None, timeout=120)) as connection:
        connection.execute("PRAGMA synchronous = NORMAL")
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while not over.wait(0.01):
            trace, spans = _run(int(writes), random, "x" * 10_000)
            began = time.perf_counter()
            connection.execute("BEGIN IMMEDIATE")
            lock = max(lock, time.perf_counter() - began)
            connection.execute("INSERT INTO traces VALUES (?,?,?,?)", trace)
            connection.execute(_SPAN, next(spans))
            connection.execute("COMMIT")
            longest = max(longest, time.perf_counter() - began)
            writes += 1
    sys.stdout.write(json.dumps({"lock": lock, "longest": longest, "writes": int(writes)}))


def _disk(folder: Path) -> int:
    total = 0
    for file in folder.iterdir():
        with suppress(FileNotFoundError):  # a log that SQLite has deleted meanwhile
            total += file.stat().st_size
    return total


def _unnamed_files() -> int:
    total = 0
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if "etilqs" in os.readlink(link):  # noqa: PTH115
                total += link.stat().st_size
    return total


def _count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _say(label: str, value: object) -> None:
    print(f"{label:<32}{value:.2f}" if isinstance(value, float) else f"{label:<32}{value}", flush=True)


if __name__ == "__main__":
    main()
