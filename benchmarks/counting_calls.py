"""Counts the function calls of a run: a measure of its work that is the same on every machine.

The count has every call that ``sys.setprofile`` reports: each start and each resumption of a Python function,
and each C function that Python code calls. A warm run without garbage collection makes the same number of
calls each time, on any machine and in any process.
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
        own: Calls of and by the package's code, in the run on kantan_agents.
        all: All calls of the run on kantan_agents.
        plain: All calls of the run on the plain SDK.
        modules: ``own`` by file of the package.
        packages: The other calls of ``all`` by top-level package, the standard library being one. They
            include the methods that attrs generates for the package, because these have no file.
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
    """The same run on the plain SDK and on kantan_agents, with its expected outcome.

    Attributes:
        answer: The final output of both.
        tool_output: The output of the tool, or None if no tool is called.
    """

    plain: RunOnce
    ours: RunOnce
    answer: object
    tool_output: str | None = None

    def check(self, result: RunResult) -> None:
        """Check one run.

        Raises:
            RuntimeError: Its outcome is another one, so its count is meaningless.
        """
        outputs = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
        expected = [] if self.tool_output is None else [self.tool_output]
        if result.final_output != self.answer or outputs != expected:
            raise RuntimeError(f"a counted run answered {result.final_output!r}, its tools {outputs!r}")


def workloads() -> dict[str, Workload]:
    """Return the four workloads of ``overhead.py`` that have a goal, without installed tool providers."""
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
    agents.set_tracing_disabled(disabled=False)  # whatever the environment variables are
    return {name: await count(workload) for name, workload in workloads().items()}


async def count(workload: Workload, package: Path = PACKAGE) -> Counts:
    """Return the counts of one workload; ``package`` is the folder whose calls count as ``own``.

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
    """Return the calls of one run, which all repeats must equal."""
    for _ in range(WARM_RUNS):
        check(await run())
    gc.collect()
    gc.disable()  # a collection would call finalizers during a counted run
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
        # A C function has no frame, so it counts for the code that calls it.
        if event in ("call", "c_call"):
            code = frame.f_code
            key = id(code)  # hashing the code objects themselves would take most of the time
            if key in calls:
                calls[key] += 1
            else:
                calls[key] = 1
                frames[key] = code, frame.f_globals.get("__name__", GENERATED)

    await asyncio.sleep(0)  # until now the loop holds the last run's result, whose deletion makes calls
    sys.setprofile(note)  # for this thread, which is the event loop's
    try:
        # In its own task, so that a resumption does not pass through our callers.
        result = await asyncio.create_task(run())
    finally:
        sys.setprofile(None)
    check(result)
    counted: _Calls = Counter()
    for key, number in calls.items():
        counted[frames[key]] += number  # code objects of the same source are equal, such as generated ones
    return counted


def _top_level(module: str) -> str:
    name = module.partition(".")[0]
    return STANDARD_LIBRARY if name in sys.stdlib_module_names else name


def _name(code: CodeType) -> str:
    # Code objects have no qualified name in Python 3.10.
    return str(getattr(code, "co_qualname", code.co_name))


def _place(code: CodeType) -> str:
    return f"{Path(code.co_filename).name}:{_name(code)}"
