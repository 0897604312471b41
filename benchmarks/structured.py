"""Measures the cost of structured output: reading replies, hostile replies, and whole runs.

    python benchmarks/structured.py [--quick] [--repeats 31] [--strict]

Two sides take turns in short batches; a figure is the median, a ratio the median of the ratios of
neighbouring batches, and ``A/A`` a side against itself. The parsers of LangChain, pydantic-ai and json-repair
are measured if they are installed (``pip install langchain-core pydantic-ai-slim json-repair``), on the
replies that they can read; their results are checked first. Missed goals are listed at the end; with
``--strict`` the exit code is then 1.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agents import set_trace_processors
from rich.console import Console

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.measure import Rows, environment, timed, timed_call
from benchmarks.overhead import FakeModel, pair
from benchmarks.overhead import Report as Weather
from benchmarks.report import Report, milliseconds
from kantan_agents import parse_structured_output

RUN_GOAL = 0.70
HOSTILE_GOAL = 0.1
"""Maximum seconds for any reply of ``HOSTILE_SIZE`` characters."""
HOSTILE_SIZE = 5_000_000

COMPARED_SIZE = 1_000
"""Characters of the hostile replies for other parsers; some take minutes for a hundred times as many."""

Parser = Callable[[str], Any]


def document(size: int) -> dict[str, Any]:
    """Return an object whose JSON text has about ``size`` characters."""
    row = {"name": "lamp", "price": 9.5, "tags": ["new", "small"], "note": 'a "quoted" word, and {braces}'}
    return {"rows": [row] * max(1, size // len(json.dumps(row)))}


REPLIES: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in a fence": "```json\n{}\n```".format,
    "prose and a fence": "Here you are:\n\n```json\n{}\n```\n\nAnything else?".format,
    "prose around": "The answer is {} and that is all.".format,
    "trailing comma": lambda text: text[:-1] + ",}",
    "Python's dict": lambda text: repr(json.loads(text)),
}
ALWAYS_READ = ("as it is", "in a fence", "prose and a fence", "prose around")
"""Replies that the three steps of the specification read, at any length."""


def peers() -> dict[str, Parser]:
    """Return the other parsers that are installed, with their versions."""
    found: dict[str, Parser] = {}
    for package, module, name in (
        ("langchain-core", "langchain_core.utils.json", "parse_json_markdown"),
        ("pydantic-ai-slim", "pydantic_ai._utils", "strip_markdown_fences"),
        ("json-repair", "json_repair", "loads"),
    ):
        try:
            parser = getattr(importlib.import_module(module), name)
        except ImportError:
            continue
        found[f"{package} {version(package)}"] = then_loaded(parser) if "strip" in name else parser
    return found


def then_loaded(strip: Callable[[str], str]) -> Parser:
    """Return a parser that parses the output of a function that removes fences."""
    return lambda text: json.loads(strip(text))


def reads(parser: Parser, reply: str, expected: Any) -> bool:
    """Whether a parser can read a reply."""
    try:
        return bool(parser(reply) == expected)
    except Exception:  # noqa: BLE001 - any exception means that it cannot
        return False


async def parsing(report: Report, sizes: tuple[int, ...]) -> None:
    """Measure replies of several sizes against json.loads of the bare JSON and against other parsers."""
    others = peers()
    report.say(f"\nothers: {', '.join(others) or 'none installed'}")
    for size in sizes:
        count = max(1, 200_000 // size)
        expected = document(size)
        text = json.dumps(expected)
        report.begin(f"1. a reply of {len(text):,}", "json.loads", "kantan_agents")
        for name, dress in REPLIES.items():
            reply = dress(text)
            if not reads(parse_structured_output, reply, expected):
                if name in ALWAYS_READ:
                    raise RuntimeError(f"not read: {name}")
                report.say(f"{name}: not read")  # damaged all over, and too long for the budget
                continue
            bare, ours = partial(json.loads, text), partial(parse_structured_output, reply)
            await report.row(name, timed_call(bare), timed_call(ours), count)
        if size > COMPARED_SIZE:
            continue
        for peer, parser in others.items():
            report.begin(f"   against {peer}", "theirs", "kantan_agents")
            for name, dress in REPLIES.items():
                reply = dress(text)
                if not reads(parser, reply, expected) or not reads(parse_structured_output, reply, expected):
                    report.say(f"{name}: not read by both")
                    continue
                theirs, ours = partial(parser, reply), partial(parse_structured_output, reply)
                await report.row(name, timed_call(theirs), timed_call(ours), 10)


HOSTILE = {
    "opening braces": "{",
    "closing braces": "}",
    "empty objects": "{}",
    "nested objects": '{"a":',
    "open members": '{"a":1,',
    "open brackets": "[",
    "quotes": '"',
    "braces and quotes": '{"',
    "braces and single quotes": "{'",
    "fences": "```",
    "fences with braces": "```json\n{",
    "thoughts": "<think>",
    "comments": "/*",
    "braces with comments": "{/*",
    "backslashes": "\\",
    "full-width braces": "\uff5b",
    "letters": "a",
}


def hostile(report: Report, repeats: int) -> None:
    """Measure replies designed to take long; a figure is the median of a few single times."""
    rows = Rows(report.console, f"2. hostile, {HOSTILE_SIZE:,}", "kantan_agents", "goal", widths=(36, 15, 12))
    for name, piece in HOSTILE.items():
        text = piece * (HOSTILE_SIZE // len(piece))
        taken = sorted(once(text) for _ in range(max(3, repeats // 5)))
        seconds = taken[len(taken) // 2]
        rows.row(name, milliseconds(seconds), milliseconds(HOSTILE_GOAL))
        report.judge(f"hostile, {name}", seconds, HOSTILE_GOAL, milliseconds(seconds))


def once(text: str) -> float:
    """Return the seconds for one reply."""
    start = time.perf_counter()
    parse_structured_output(text)
    return time.perf_counter() - start


async def runs(report: Report) -> None:
    """Measure structured runs against the plain SDK, and the modes against each other."""
    reply = '{"city": "Oslo", "degrees": 21.5, "sunny": true}'
    report.begin("3. a run", "plain SDK", "kantan_agents")
    plain, ours = pair(FakeModel(reply), output_type=Weather)
    await report.row("native", timed(plain), timed(ours), 15, goal=RUN_GOAL)
    for mode in ("native", "tool", "prompt"):
        _, in_mode = pair(FakeModel(reply), output_type=Weather, output_mode=mode)
        await report.row(f"output_mode={mode!r}", timed(plain), timed(in_mode), 15)
    _, dressed = pair(FakeModel(f"Sure:\n```json\n{reply}\n```"), output_type=Weather)
    await report.row("a reply in a fence", timed(plain), timed(dressed), 15)


async def main(repeats: int, *, quick: bool) -> list[str]:
    """Measure everything, print it and return the missed goals."""
    set_trace_processors([])
    report = Report(Console(width=110), repeats)
    report.say(f"{environment('openai-agents', 'openai', 'pydantic')}; {repeats} repeats")
    await parsing(report, (1_000,) if quick else (1_000, 50_000))
    report.say("")
    hostile(report, repeats)
    await runs(report)
    for missed in report.missed:
        report.say(f"GOAL MISSED: {missed}")
    return report.missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=31, help="batches a side (default 31)")
    parser.add_argument("--quick", action="store_true", help="3 repeats, short replies")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    arguments = parser.parse_args()
    missed = asyncio.run(main(3 if arguments.quick else arguments.repeats, quick=arguments.quick))
    sys.exit(1 if missed and arguments.strict else 0)
