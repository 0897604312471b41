"""Measures how long a person waits for a command, as a ratio to `import agents` in a new interpreter.

    python benchmarks/startup.py [--quick] [--repeats 9] [--only "traces list" ...]

Each figure is one process from start to end; for `chat` at a terminal it ends with the first prompt. The two
sides take turns, and the control is a second `import agents`. Ratios are those of processor time, which other
programs on the machine change less than the seconds that pass. The project has 100 recorded runs. `run` makes
a whole run, so its ratio is that to a program that makes the same run with the plain SDK. Goals: 0.2 for
commands that only read, 0.15 for help, 1.2 for `chat` and `run`. The exit code is 1 if one is missed.
"""

from __future__ import annotations

import argparse
import os
import pty
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from rich.console import Console

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks import measure
from benchmarks.measure import Rows, environment
from benchmarks.startup_project import ENDLESS, commands
from kantan_agents.cli.app import make_commands
from kantan_agents.testing import OfflineServer

RUNS = 100
READING, HELP, RUNNING = 0.2, 0.15, 1.2
"""The goals."""
PROMPT = b">\x1b"
"""The prompt, and the beginning of what sets the color after it."""
WAIT_SECONDS = 60.0
PROGRAM = [sys.executable, "-m", "kantan_agents"]
BASE = [sys.executable, "-c", "import agents"]
SAME_RUN = """
from agents import Agent, Runner
agent = Agent(name="assistant", instructions="You are a helpful assistant.", model="gpt-5-mini")
print(Runner.run_sync(agent, "Hello").final_output)
"""
"""The program that `run` is compared with."""
RUN = "run, to the SDK's program"
OTHER_CODES = {"tools explain": 1, "traces diff": 1}
ONCE = {"agents new"}
"""Commands that cannot be repeated."""

Measure = Callable[[], tuple[float, float]]
"""Starts a process; returns the seconds until it has ended, and its seconds of processor time."""


def main() -> int:
    """Measure all rows and return the exit code."""
    options = _options()
    repeats = 1 if options.quick or measure.shortest else options.repeats
    console = Console(width=100)
    with tempfile.TemporaryDirectory() as path, OfflineServer(lambda _: "Fine.") as server:
        folder = Path(path)
        subprocess.run(
            [sys.executable, "-m", "benchmarks.startup_project", path, str(3 if repeats == 1 else RUNS)],
            cwd=Path(__file__).resolve().parents[1],
            check=True,
        )
        changes = {"HOME": path, "KANTAN_AGENTS_CONFIG_DIR": path, "TERM": "xterm", **server.environment()}
        environ = {**os.environ, **changes}
        # As after an installation: without it, each process compiles the package.
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        if not measure.shortest:  # it takes longer than all else, and only changes figures
            environ["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        console.print(environment("openai-agents", "openai", "typer", "pydantic"), highlight=False)
        console.print(f"{os.cpu_count()} cores\n", highlight=False)
        base = _process(BASE, folder, environ)
        same_run = _process([sys.executable, "-c", SAME_RUN], folder, environ)
        if measure.shortest:  # nobody reads the ratios, so once will do for all rows
            base, same_run = cache(base), cache(same_run)
        else:
            base()  # compiles what it imports
            same_run()
        rows = Rows(console, "command", "seconds", "ratio", "goal", widths=(26, 10, 8, 8))
        missed = []
        sides = {"import agents (A/A)": (base, None), **_sides(folder, environ)}
        for name, (side, goal) in sides.items():
            if options.only and not any(name.startswith(one) for one in options.only):
                continue
            seconds, ratio = _compare(same_run if name == RUN else base, side, repeats)
            rows.row(name, f"{seconds:.3f}", f"{ratio:.2f}", "-" if goal is None else f"{goal:.2f}")
            if goal is not None and ratio > goal:
                missed.append(name)
    for name in missed:
        console.print(f"missed: {name}", highlight=False)
    return 1 if missed and repeats > 1 else 0


def _sides(folder: Path, environ: Mapping[str, str]) -> dict[str, tuple[Measure, float | None]]:
    root = [PROGRAM, *([*PROGRAM, name] for name in make_commands().commands)]
    sides: dict[str, tuple[Measure, float | None]] = {
        f"{' '.join(line[3:]) or 'kantan-agents'} --help": (
            _process([*line, "--help"], folder, environ),
            HELP,
        )
        for line in root
    }
    for words, arguments in commands(folder).items():
        if words in ENDLESS | ONCE:
            continue
        line = [*PROGRAM, *words.split(), *_again(words, arguments)]
        sides[words] = (_process(line, folder, environ, OTHER_CODES.get(words, 0)), READING)
    model = ["--model", "gpt-5-mini"]
    sides[RUN] = (_process([*PROGRAM, "run", "Hello", *model], folder, environ), RUNNING)
    sides["chat"] = (_until_prompt([*PROGRAM, "chat", *model], folder, environ), RUNNING)
    return sides


def _again(words: str, arguments: list[str]) -> list[str]:
    """Return arguments with which a command can be repeated."""
    if words in ("eval report", "traces save", "traces export", "eval dataset"):
        return [*arguments, "--force"]
    return arguments


def _compare(base: Measure, side: Measure, repeats: int) -> tuple[float, float]:
    """Return the median seconds of a side, and the median of its ratios to the base beside it."""
    if repeats > 1:
        side()
    seconds, ratios = [], []
    for number in range(repeats):
        # The sides alternate in going first, so that a drift of the machine favors neither.
        first, second = (base, side) if number % 2 == 0 else (side, base)
        one, two = first(), second()
        (_, plain), (passed, other) = (one, two) if number % 2 == 0 else (two, one)
        seconds.append(passed)
        ratios.append(other / plain)
    middle = repeats // 2
    return sorted(seconds)[middle], sorted(ratios)[middle]


def _processor_seconds() -> float:
    """Return the processor time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _process(line: list[str], folder: Path, environ: Mapping[str, str], code: int = 0) -> Measure:
    def seconds() -> tuple[float, float]:
        start, before = time.perf_counter(), _processor_seconds()
        done = subprocess.run(
            line, cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        taken = time.perf_counter() - start
        if done.returncode != code:
            raise RuntimeError(f"{' '.join(line)}: exit code {done.returncode}\n{done.stderr.decode()}")
        return taken, _processor_seconds() - before

    return seconds


def _until_prompt(line: list[str], folder: Path, environ: Mapping[str, str]) -> Measure:
    def seconds() -> tuple[float, float]:
        ours, theirs = pty.openpty()
        start, before = time.perf_counter(), _processor_seconds()
        chat = subprocess.Popen(line, cwd=folder, env=environ, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while PROMPT not in shown:
                if not select.select([ours], [], [], WAIT_SECONDS)[0]:
                    raise RuntimeError(f"no prompt, but {shown.decode()!r}")
                shown += os.read(ours, 4096)
            taken = time.perf_counter() - start
        finally:
            chat.kill()
            chat.wait()
            os.close(ours)
        return taken, _processor_seconds() - before

    return seconds


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="Measure once; the figures say nothing.")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--only", nargs="+", default=(), help="Rows that begin with one of these.")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
