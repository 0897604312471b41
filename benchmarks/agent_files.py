"""Measures the cost of finding an agent by name and of loading agents from files.

    python benchmarks/agent_files.py [--repeats 31] [--files 1000] [--quick] [--plot FILE]

The files are created in a temporary directory (see ``TMPDIR``) and removed afterwards. Their prompts have 1
to 8 kB, and a tenth of the frontmatters is invalid YAML, as is common in practice. A figure is the median
over short batches; ``A/A`` is a side measured against itself. In python-frontmatter's row the two sides take
turns; it raises for the invalid files. With ``--plot`` the cost is measured and drawn against the number of
files.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import attrs
import frontmatter
import yaml
from rich.console import Console

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.measure import Measure, Rows, compare, environment, timed, timed_call
from benchmarks.report import microseconds, milliseconds
from kantan_agents.subagent_files import AgentDefinition, AgentLoader

SECONDS = "cached", "uncached", "first", "again", "changed"
GOALS = dict(zip(SECONDS, (60e-6, 1.5e-3, 1.0, 25e-3, 25e-3), strict=True))
NAMES = {
    "cached": "get_agent, cached",
    "uncached": "get_agent, file changed",
    "first": "load_agents, first",
    "again": "load_agents, unchanged",
    "changed": "load_agents, one file changed",
}
PLOTTED = (10, 30, 100, 300, 1_000, 3_000)
PER_DIRECTORY = 100
NEVER = 1e9
"""Seconds between two checks of all files; long enough that none falls into a batch."""

PHRASES = ("review the code", "answer with", "what is wrong in it", "before anything else", "carefully")
VALID = "Use this agent to {0}. It knows how to {1}."
NOT_VALID = 'Use this agent when: {0}.\\n\\nExamples:\\n<example>user: "{1}"\\nassistant: "I will"</example>'


@attrs.frozen
class Folder:
    """A directory of generated subagent files."""

    path: Path
    files: list[Path]

    @classmethod
    def filled(cls, path: Path, count: int) -> Folder:
        """Write ``count`` files, the same each time."""
        chance = random.Random(count)
        files = [path / f"{number // PER_DIRECTORY}/agent-{number}.md" for number in range(count)]
        for number, file in enumerate(files):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text(number, chance))
        return cls(path, files)

    def loader(self) -> AgentLoader:
        """Return a loader with an empty cache."""
        return AgentLoader([self.path], recheck_seconds=NEVER)

    def read_by_frontmatter(self) -> int:
        """Read all files with python-frontmatter in a loop without a cache, and return how many it read."""
        read = 0
        for file in self.files:
            try:
                frontmatter.load(file)
            except yaml.YAMLError:
                continue
            read += 1
        return read


def text(number: int, chance: random.Random) -> str:
    """Return a subagent file of typical size; every tenth has a description that must be repaired."""
    phrase = [" ".join(chance.choices(PHRASES, k=3)) for _ in range(2)]
    description = (NOT_VALID if number % 10 == 9 else VALID).format(*phrase)  # noqa: PLR2004 - each tenth
    line = " ".join(chance.choices(PHRASES, k=4))
    prompt = "\n".join(["# What you do", ""] + [f"- {line}"] * chance.randint(15, 120))
    tools = "Read, Grep, Bash(git diff:*)"
    fields = (f"name: agent-{number}", f"description: {description}", f"tools: {tools}", "model: sonnet")
    return "\n".join(("---", *fields, "---", "", prompt, ""))


def after_an_edit(folder: Folder, run: Callable[[], Coroutine[Any, Any, Any]]) -> Measure:
    """Return the measure of the first call after an edit of the first file, without the edit itself."""
    file = folder.files[0]
    original, numbers = file.read_text(), itertools.count()

    async def batch(count: int) -> float:
        taken = 0.0
        for _ in range(count):
            file.write_text(f"{original}{next(numbers)}\n")
            start = time.perf_counter()
            await run()
            taken += time.perf_counter() - start
        return taken / count

    return batch


async def sides(folder: Folder) -> dict[str, tuple[Measure, int]]:
    """Return the measures of a folder, each with its repeats in a batch."""
    loader = folder.loader()
    time.sleep(0.1)  # noqa: ASYNC251 - so that the files are old enough to be trusted
    agents = await loader.load_agents()
    if len(agents) != len(folder.files):
        raise RuntimeError(f"{len(agents)} of {len(folder.files)} files were read: {agents.problems[:3]}")
    names = itertools.cycle([agent.name for agent in agents])

    async def cached() -> AgentDefinition:
        return await loader.get_agent(next(names))

    async def first() -> object:
        return await folder.loader().load_agents()

    many = max(1, 300 // len(folder.files))
    return {
        "cached": (timed(cached), 1_000),
        "uncached": (after_an_edit(folder, lambda: loader.get_agent("agent-0")), 20),
        "first": (timed(first), many),
        "again": (timed(loader.load_agents), 3 * many),
        "changed": (after_an_edit(folder, loader.load_agents), 3 * many),
    }


async def measure(console: Console, folder: Folder, repeats: int) -> list[str]:
    """Print the figures of a folder and return the missed goals."""
    missed = []
    rows = Rows(
        console, f"{len(folder.files):,} files", "median", "A/A", "goal", "", widths=(34, 16, 8, 16, 10)
    )
    for side, (measured, count) in (await sides(folder)).items():
        seconds, noise = await compare(measured, measured, repeats, count)
        verdict = "met" if seconds <= GOALS[side] else "missed"
        if verdict == "missed":
            missed.append(f"{NAMES[side]}: {shown(seconds)}")
        rows.row(NAMES[side], shown(seconds), f"{noise:.2f}", shown(GOALS[side]), verdict)
    return missed


async def against_frontmatter(console: Console, folder: Folder, repeats: int) -> None:
    """Print how long python-frontmatter takes for the files that a first load reads."""
    theirs = timed_call(folder.read_by_frontmatter)
    ours, count = (await sides(folder))["first"]
    seconds, ratio = await compare(theirs, ours, repeats, count)
    _, noise = await compare(theirs, theirs, repeats, count)
    rows = Rows(
        console,
        f"{len(folder.files):,} files, first",
        "files read",
        "median",
        "ratio",
        "A/A",
        widths=(34, 16, 16, 8, 8),
    )
    rows.row(
        "python-frontmatter", f"{folder.read_by_frontmatter():,}", shown(seconds), "1.00", f"{noise:.2f}"
    )
    rows.row("load_agents", f"{len(folder.files):,}", shown(seconds * ratio), f"{ratio:.2f}", "")


async def growth(sizes: tuple[int, ...], folder: Path, repeats: int) -> dict[str, list[float]]:
    """Return the seconds of each measure by number of files."""
    series: dict[str, list[float]] = {name: [] for name in (*SECONDS, "frontmatter")}
    for size in sizes:
        filled = Folder.filled(folder / f"of-{size}", size)
        measured = await sides(filled)
        measured["frontmatter"] = (timed_call(filled.read_by_frontmatter), measured["first"][1])
        for name, (side, count) in measured.items():
            seconds, _ = await compare(side, side, repeats, count)
            series[name].append(seconds)
    return series


def shown(seconds: float) -> str:
    """Return a duration with a suitable unit."""
    return microseconds(seconds) if seconds < 1e-3 else milliseconds(seconds)  # noqa: PLR2004 - 1 ms


async def main(repeats: int, files: int, plot: Path | None, sizes: tuple[int, ...]) -> list[str]:
    """Measure everything, print it and return the missed goals."""
    console = Console(width=110)
    machine = environment("PyYAML", "cachetools", "anyio", "python-frontmatter")
    console.print(f"{machine}; {repeats} repeats\n", highlight=False, markup=False, soft_wrap=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Folder.filled(Path(name) / "agents", files)
        missed = await measure(console, folder, repeats)
        console.print()
        await against_frontmatter(console, folder, repeats)
        if plot is not None:
            from benchmarks.agent_plot import draw

            series = await growth(sizes, Path(name), max(3, repeats // 3))
            labels = {**NAMES, "frontmatter": "python-frontmatter, all files"}
            draw(sizes, {labels[name]: seconds for name, seconds in series.items()}, plot, machine)
            console.print(f"\ndrawn: {plot}", highlight=False, markup=False)
    for miss in missed:
        console.print(f"GOAL MISSED: {miss}", highlight=False, markup=False)
    return missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=31, help="batches a side (default 31)")
    parser.add_argument("--files", type=int, default=1_000, help="how many files (default 1,000)")
    parser.add_argument("--quick", action="store_true", help="3 repeats, and a plot of up to 300 files")
    parser.add_argument("--plot", type=Path, help="draw the cost against the number of files, as PNG")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    arguments = parser.parse_args()
    repeats, sizes = (3, PLOTTED[:4]) if arguments.quick else (arguments.repeats, PLOTTED)
    missed = asyncio.run(main(repeats, arguments.files, arguments.plot, sizes))
    sys.exit(1 if missed and arguments.strict else 0)
