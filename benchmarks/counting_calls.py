"""Runs whose calls are counted: how much work a run makes, in a number that is the same on any machine.

Counted are the calls that ``sys.setprofile`` tells of: each start and each resumption of a Python function,
and each C function that Python code calls. Warm runs without garbage collection make the same number each
time, on any machine and in any process.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import agents
import attrs
from agents import RunResult

import kantan_agents
from benchmarks.measure import RunOnce
from benchmarks.overhead import FakeModel, Report, make_tools, pair

PACKAGE = Path(kantan_agents.__file__).parent
WARM_RUNS = 5
REPEATS = 5
STANDARD_LIBRARY = "standard library"
GENERATED = "generated code"


@attrs.frozen
class Counts:
    """The calls of one workload.

    Attributes:
        own: Those of our run that the code of the package makes or is called by.
        all: Those of our run.
        plain: Those of the plain SDK's run.
        modules: ``own`` by file of the package.
        packages: The rest of ``all`` by top-level package; the standard library is one. Methods that attrs
            generates for the package have no file in it, and are here.
        functions: ``own`` by file and function.
    """

    own: int
    all: int
    plain: int
    modules: dict[str, int]
    packages: dict[str, int]
    functions: dict[str, dict[str, int]] = attrs.field(factory=dict, eq=False)


@attrs.frozen
class Workload:
    """The same run on the plain SDK and on kantan_agents, and what it must come to.

    Attributes:
        answer: The final output on both.
        tool_output: What the tool answers, None if none is called.
    """

    plain: RunOnce
    ours: RunOnce
    answer: object
    tool_output: str | None = None

    def check(self, result: RunResult) -> None:
        """Check one run.

        Raises:
            RuntimeError: It did something else, so that its count says nothing.
        """
        outputs = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
        expected = [] if self.tool_output is None else [self.tool_output]
        if result.final_output != self.answer or outputs != expected:
            raise RuntimeError(f"a counted run answered {result.final_output!r}, its tools {outputs!r}")


def workloads() -> dict[str, Workload]:
    """Return the four workloads of ``overhead.py`` that have a goal; installed tool providers add nothing."""
    sunny = "It is sunny."
    text = FakeModel(sunny)
    calling = FakeModel(sunny, calls_tool=True)
    report = Report(city="Oslo", degrees=21.5, sunny=True)

    def both(*arguments: Any, **options: Any) -> tuple[RunOnce, RunOnce]:
        return pair(*arguments, **options, tool_providers=None)

    return {
        "one turn": Workload(*both(text), sunny),
        "tool turn": Workload(*both(calling, make_tools(1)), sunny, "sunny in Oslo"),
        "100 tools": Workload(*both(text, make_tools(100)), sunny),
        "structured": Workload(*both(FakeModel(report.model_dump_json()), output_type=Report), report),
    }


async def count_all() -> dict[str, Counts]:
    """Return the counts of each workload.

    Raises:
        RuntimeError: A run did something else than its workload, or not the same each time.
    """
    agents.set_trace_processors([])
    agents.set_tracing_disabled(disabled=False)  # whatever the environment says
    return {name: await count(workload) for name, workload in workloads().items()}


async def count(workload: Workload, package: Path = PACKAGE) -> Counts:
    """Return the counts of one workload; ``package`` is the folder whose code is our own.

    Raises:
        RuntimeError: A run did something else than its workload, or not the same each time.
    """
    plain = await _steady(workload.plain, workload.check)
    ours = await _steady(workload.ours, lambda context: workload.check(context["result"]))
    modules: Counter[str] = Counter()
    packages: Counter[str] = Counter()
    functions: dict[str, dict[str, int]] = {}
    for (code, importable), calls in ours.items():
        if code.co_filename.startswith(f"{package}{os.sep}"):
            module = Path(code.co_filename).relative_to(package).as_posix()
            modules[module] += calls
            called = functions.setdefault(module, {})
            called[_name(code)] = called.get(_name(code), 0) + calls
        else:
            packages[_top_level(importable)] += calls
    if not modules:
        raise RuntimeError(f"a run of ours called nothing in {package}")
    return Counts(modules.total(), ours.total(), plain.total(), dict(modules), dict(packages), functions)


_Calls = Counter[tuple[CodeType, str]]


async def _steady(run: RunOnce, check: Callable[[Any], None]) -> _Calls:
    """Return the calls of one run, the same in all repeats."""
    for _ in range(WARM_RUNS):
        check(await run())
    gc.collect()
    gc.disable()  # a collection calls finalizers in whatever run it falls into
    try:
        first, *others = [await _counted(run, check) for _ in range(REPEATS)]
    finally:
        gc.enable()
    for other in others:
        if other != first:
            changed = {_place(code) for code, _ in (other - first) | (first - other)}
            raise RuntimeError(f"warm runs make different calls, in {', '.join(sorted(changed))}")
    return first


async def _counted(run: RunOnce, check: Callable[[Any], None]) -> _Calls:
    frames: dict[int, tuple[CodeType, str]] = {}
    calls: dict[int, int] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        # A C function has no frame: it counts for the code that calls it.
        if event in ("call", "c_call"):
            code = frame.f_code
            key = id(code)  # hashing the code itself takes longer than all the rest
            if key in calls:
                calls[key] += 1
            else:
                calls[key] = 1
                frames[key] = code, frame.f_globals.get("__name__", GENERATED)

    await asyncio.sleep(0)  # until now the loop holds the last run's result, which calls when it goes
    sys.setprofile(note)  # of this thread, which is the event loop's
    try:
        # A task of its own, so that a resumption does not come through our callers.
        result = await asyncio.create_task(run())
    finally:
        sys.setprofile(None)
    check(result)
    counted: _Calls = Counter()
    for key, number in calls.items():
        counted[frames[key]] += number  # codes of one text are equal, such as generated ones
    return counted


def _top_level(module: str) -> str:
    name = module.partition(".")[0]
    return STANDARD_LIBRARY if name in sys.stdlib_module_names else name


def _name(code: CodeType) -> str:
    # Python 3.10 knows no qualified names of code.
    return str(getattr(code, "co_qualname", code.co_name))


def _place(code: CodeType) -> str:
    return f"{Path(code.co_filename).name}:{_name(code)}"
