"""Measures the cost of tool rules: decisions, parameter checks, guarded calls, a blocked event loop.

    python benchmarks/tool_rules.py [--quick] [--repeats 61] [--strict] [--published PYTHON]

Two sides take turns in short batches; a figure is the median, a ratio the median of the ratios of
neighbouring batches, and ``A/A`` a side against itself. The published kantan-agents runs in its own
environment: that of ``PYTHON``, or a temporary one, which takes half a minute to install (``--published
none`` leaves it out). Guarded calls of both releases are measured in separate processes: ``call`` is a call
as the SDK's runner makes it, and ``guard`` the difference between the invokers of the guarded and the
unguarded tool. Missed goals are listed at the end; with ``--strict`` the exit code is then 1.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import json
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.event_loop import LENGTH, LoopClock, attacks, hold_times, with_re
from benchmarks.guarded_calls import ARGUMENTS, BAD_ARGUMENTS, BARE, CALLS, PARAMS, SIZES, names
from benchmarks.measure import Measure, Rows, environment, timed_call
from benchmarks.report import Report, milliseconds
from benchmarks.workers import PUBLISHED, Worker, published_python
from kantan_agents.tool_rules import ToolFacts, ToolRules, decide_call, decide_tool, parse_arguments

FLAT = 1.5
"""Maximum ratio of the cost with 10,000 names to that with one."""

HELD = 0.005
"""Maximum seconds for which a check may block the event loop."""

COMPARED_LENGTH = 2_000
"""Characters of the hostile values for other regex engines."""

WEATHER = ToolFacts(("weather",), "city", BARE.params_json_schema)


def many(measure: Measure, times: int) -> Measure:
    """Return the same measure with batches ``times`` as long, for the faster of two sides."""
    return lambda count: measure(count * times)


def ask_permits(rules: ToolRules) -> Callable[[], object]:
    """Return the check whether a tool may be used, without a reason."""
    return partial(rules.permits, "weather")


def ask_decide(rules: ToolRules) -> Callable[[], object]:
    """Return the decision about a tool, with its reason."""
    return partial(decide_tool, rules, WEATHER)


async def decisions(report: Report) -> None:
    """Measure allow and deny: how much longer many names take than one."""

    def rules(key: str, count: int, extra: str = "") -> ToolRules:
        return ToolRules.parse({key: [f"{name}{extra}" for name in names(count)]})

    report.begin("1. decision", "1 name", "n names")
    for name, ask, key, extra in (
        ("permits, allow", ask_permits, "allow", ""),
        ("decide_tool, allow", ask_decide, "allow", ""),
        ("decide_tool, deny", ask_decide, "deny", ""),
        ("decide_tool, allow patterns", ask_decide, "allow", "*"),
    ):
        for size in SIZES[1:]:
            one, other = (timed_call(ask(rules(key, count, extra))) for count in (1, size))
            await report.row(f"{name}, {size:,}", one, other, 3000, goal=FLAT)
    one, other = (
        timed_call(partial(ToolRules.parse, {"allow": names(count), "deny": names(count)}))
        for count in (1, SIZES[-1])
    )
    await report.row(f"reading the rules once, {SIZES[-1]:,}", one, other, 1)


async def parameters(report: Report) -> None:
    """Measure parameter checks against jsonschema, if it is installed."""
    try:
        jsonschema = importlib.import_module("jsonschema")
    except ImportError:
        report.say("\n2. parameters: left out, jsonschema is not installed")
        return
    report.say(f"\nThe same rules for three parameters; jsonschema {version('jsonschema')}")
    report.begin("2. parameters", "jsonschema", "kantan_agents")
    rules = ToolRules.parse({"allow": ["weather"], "params": {"weather": PARAMS}})
    checks = rules.checks(WEATHER.names)
    if checks is None:
        raise RuntimeError("there are rules for this tool")
    schema = {"type": "object", "properties": PARAMS}
    validator = jsonschema.Draft202012Validator(schema)
    for kind, text in (("valid", ARGUMENTS), ("invalid", BAD_ARGUMENTS)):
        arguments = json.loads(text)
        theirs = timed_call(partial(first_error, validator, arguments))
        ours = timed_call(partial(checks.breach, "weather", arguments))
        await report.row(f"{kind}, arguments parsed", theirs, many(ours, 10), 100)
        whole = many(timed_call(partial(decide_text, rules, text)), 10)
        for name, call, count in (
            ("JSON text, whole decision", partial(first_error_of, validator, text), 100),
            ("same, validator per call", partial(first_error_anew, jsonschema, schema, text), 100),
            ("same, jsonschema.validate", partial(validate_anew, jsonschema, schema, text), 5),
        ):
            await report.row(f"{kind}, {name}", timed_call(call), whole, count)


def decide_text(rules: ToolRules, text: str) -> object:
    """Decide about a call as the guard does, beginning with its JSON text."""
    return decide_call(rules, WEATHER, parse_arguments("weather", text))


def first_error(validator: Any, arguments: Any) -> object:
    """Return the first error that jsonschema finds."""
    return next(validator.iter_errors(arguments), None)


def first_error_of(validator: Any, text: str) -> object:
    """Return the first error that jsonschema finds, beginning with the JSON text."""
    return first_error(validator, json.loads(text))


def first_error_anew(jsonschema: Any, schema: Any, text: str) -> object:
    """Return the first error, with a validator created for the call."""
    return first_error(jsonschema.Draft202012Validator(schema), json.loads(text))


def validate_anew(jsonschema: Any, schema: Any, text: str) -> object:
    """Return the first error as the simplest guard would, with ``jsonschema.validate``."""
    try:
        return jsonschema.validate(json.loads(text), schema)
    except jsonschema.ValidationError as error:
        return error


async def guarded_calls(report: Report, ours: Worker) -> None:
    """Measure guarded tool calls against unguarded ones, and whether many names cost more than one."""
    report.begin("3. tool call", "unguarded", "guarded")
    for case in ("no rules", *(f"allow {size}" for size in SIZES), "params"):
        bare, guarded = ours.measure("bare", case), ours.measure("guarded", case)
        await report.row(case_name(case), bare, guarded, 60)
    report.begin("   names in allow", "1 name", "n names")
    for kind, label in (("guarded", "call"), ("guard", "guard")):
        one = ours.measure(kind, "allow 1")
        for size in SIZES[1:]:
            other = ours.measure(kind, f"allow {size}")
            # A list may be changed in place, so the guard compares it at each call: 1.6 ns per name.
            goal = FLAT if kind == "guarded" else None
            await report.row(f"{label}, allow {size:,}", one, other, 120, goal=goal)
    one, other = ours.measure("guard", "allow 1"), ours.measure("guard", "allow as a tuple")
    await report.row(f"guard, a tuple of {SIZES[-1]:,}", one, other, 120, goal=FLAT)


async def against_published(report: Report, ours: Worker, first: Worker, second: Worker) -> None:
    """Measure the same calls in the published release; its control is a second process of it."""
    found = first.versions["kantan-agents"]
    if found != PUBLISHED:
        raise SystemExit(f"--published must be a Python that has kantan-agents {PUBLISHED}, not {found}")
    report.say(f"\n{PUBLISHED}: {versions(first)}\nours:  {versions(ours)}")
    if any(first.versions[name] != ours.versions[name] for name in ("openai-agents", "openai")):
        report.say("The two sides run on different SDKs, so the ratios are not about kantan-agents alone.")
    report.begin("4. against the published release", PUBLISHED, "kantan_agents")
    allowed = tuple(f"allow {size}" for size in SIZES)
    for kind, label, cases, count in (
        ("guarded", "call", ("no rules", *allowed, "params", "refused"), 60),
        ("guard", "guard", ("no rules", *allowed, "params"), 60),
        ("run", f"1/{CALLS} of a run", ("no rules", *allowed, "params"), 1),
    ):
        for case in cases:
            theirs, mine, control = (worker.measure(kind, case) for worker in (first, ours, second))
            await report.row(f"{label}, {case_name(case)}", theirs, mine, count, control=control)


def case_name(case: str) -> str:
    """Return the name of a case in the table."""
    if case == "params":
        return "allow + params"
    if case == "refused":
        return "params, refused"
    return case.replace("10000", "10,000")


def versions(worker: Worker) -> str:
    """Return the versions that a worker measures."""
    return ", ".join(f"{name} {version}" for name, version in worker.versions.items() if name != "path")


async def event_loop(
    report: Report, clock: LoopClock, published: Worker | None, rounds: int, limit: float
) -> None:
    """Measure how long the check of a hostile call blocks the event loop."""
    tried = attacks()
    report.say(
        f"\nValues of {LENGTH:,} characters, {rounds} rounds; beside it, with {COMPARED_LENGTH:,} "
        f"characters, Python's re and a guarded call of {PUBLISHED}"
    )
    headings = ("re", PUBLISHED, "median", "worst", "goal")
    rows = Rows(report.console, "5. event loop held", *headings, widths=(36, 12, 12, 12, 12, 9))
    gc.collect()
    gc.freeze()
    held = await hold_times(clock, tried, rounds)
    control = held["control"]
    rows.row(
        "control, 1 ms of work", "-", "-", milliseconds(control.median), milliseconds(control.worst), "-"
    )
    for attack in tried:
        times = held[attack.name]
        beside = ["-", "-"]
        if attack.pattern is not None:
            value = attack.shorter_value(COMPARED_LENGTH)
            beside[0] = _at_most(with_re(attack.pattern, value, limit), limit)
            if published is not None:
                beside[1] = _at_most(await published.hostile(attack.pattern, value, limit), limit)
        rows.row(
            attack.name, *beside, milliseconds(times.median), milliseconds(times.worst), milliseconds(HELD)
        )
        report.judge(
            attack.name, times.median, HELD, f"holds the event loop for {milliseconds(times.median)}"
        )


def _at_most(seconds: float | None, limit: float) -> str:
    return f">{limit:g} s" if seconds is None else milliseconds(seconds)


async def main(clock: LoopClock, python: str | None, repeats: int, rounds: int, limit: float) -> list[str]:
    """Measure everything, print the tables, and return the goals that were missed."""
    report = Report(Console(width=110), repeats)
    packages = ("openai-agents", "openai", "jsonschema-rs")
    report.say(f"{environment(*packages)}; {repeats} repeats")
    gc.collect()
    gc.freeze()  # so that collections between the batches are fast
    await decisions(report)
    await parameters(report)
    async with AsyncExitStack() as stack:
        # Both processes start at the same time.
        started = [
            await stack.enter_async_context(Worker.started(command, ours=ours))
            for command, ours in ((sys.executable, True), *([(python, False)] * 2 if python else ()))
        ]
        mine, *theirs = [await worker.ready() for worker in started]
        await guarded_calls(report, mine)
        if theirs:
            await against_published(report, mine, *theirs)
        else:
            report.say(f"\n4. against the published release: left out, there is no {PUBLISHED} here")
        await event_loop(report, clock, theirs[0] if theirs else None, rounds, limit)
    return report.missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=61, help="batches a side (default 61)")
    parser.add_argument("--quick", action="store_true", help="7 repeats, for CI")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    parser.add_argument(
        "--published",
        metavar="PYTHON",
        help=f"a Python that has kantan-agents {PUBLISHED}, or none; default: a temporary environment",
    )
    options = parser.parse_args()
    sizes = (7, 3, 0.1) if options.quick else (max(9, options.repeats), 15, 2.0)
    clock = LoopClock()
    loop = asyncio.SelectorEventLoop(clock)
    with published_python(options.published) as published:
        missed = loop.run_until_complete(main(clock, published, *sizes))
    loop.close()
    for goal in missed:
        sys.stdout.write(f"GOAL MISSED  {goal}\n")
    sys.exit(1 if missed and options.strict else 0)
