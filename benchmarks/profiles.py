"""Profiles the time and the memory of runs on kantan_agents and on the plain SDK, by module.

    python benchmarks/profiles.py [--runs 300] [--write]

Time is that inside each module's own functions under ``cProfile``. The profiler makes Python calls slower,
and calls of C code less so, which means that the shares show where to look, not what something costs. Calls
of C code count for the calling module. Memory is what each module has allocated according to ``tracemalloc``
while runs wait.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import pstats
import sys
import tracemalloc
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import agents
import pydantic

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import kantan_agents
from benchmarks.measure import RunOnce, environment
from benchmarks.overhead import INSTRUCTIONS, FakeModel, Report, WaitingModel, make_tools, pair
from benchmarks.pages import with_results
from kantan_agents import set_trace_processors

PAGE = Path(__file__).resolve().parent / "results" / "profiles.md"
COMMAND = "python benchmarks/profiles.py"
_SHOWN = 6
_HELD = 500
_PACKAGES = {
    Path(package.__file__ or "").parent: package.__name__ for package in (agents, kantan_agents, pydantic)
}
_REST = "Python and others"


def hand_offs(count: int) -> tuple[RunOnce, RunOnce]:
    """Return a run of one turn, on both sides, of an agent with ``count`` hand-off targets."""
    model = FakeModel("It is sunny.")
    plain = agents.Agent(
        name="bench",
        instructions=INSTRUCTIONS,
        model=model,
        handoffs=[agents.Agent(name=f"target {n}", instructions="x", model=model) for n in range(count)],
    )
    ours = kantan_agents.Agent(
        "bench",
        INSTRUCTIONS,
        model=model,
        handoffs=[kantan_agents.Agent(f"target {n}", "x", model=model) for n in range(count)],
    )

    async def run_plain() -> object:
        return await agents.Runner.run(plain, "How is it in Oslo?", context={})

    async def run_ours() -> object:
        return await ours.run_async("How is it in Oslo?")

    return run_plain, run_ours


def workloads() -> dict[str, tuple[RunOnce, RunOnce]]:
    """Return the profiled runs, the plain SDK first."""
    text = FakeModel("It is sunny.")
    calling = FakeModel("It is sunny.", calls_tool=True)
    report = FakeModel('{"city": "Oslo", "degrees": 21.5, "sunny": true}')
    return {
        "one turn": pair(text),
        "tool call and answer": pair(calling, make_tools(1)),
        "structured output": pair(report, output_type=Report),
        "one turn, 1,000 tools": pair(text, make_tools(1_000)),
        "one turn, 10 handoff targets": hand_offs(10),
    }


async def shares(runs: Sequence[RunOnce], count: int) -> list[tuple[float, dict[str, float]]]:
    """Return for each of ``runs`` its seconds under the profiler and the share of each module.

    The runs take turns, so that a change of the machine's speed affects all of them.
    """
    profiles = [cProfile.Profile(builtins=False) for _ in runs]
    for run in runs:
        for _ in range(5):
            await run()
    for _ in range(count):
        for run, profile in zip(runs, profiles, strict=True):
            profile.enable()
            await run()
            profile.disable()
    return [_parts(profile, count) for profile in profiles]


def _parts(profile: cProfile.Profile, count: int) -> tuple[float, dict[str, float]]:
    seconds: dict[str, float] = defaultdict(float)
    stats: Mapping[tuple[str, int, str], tuple[int, int, float, float, object]]
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    for (file, _, _), (_, _, own, _, _) in stats.items():
        seconds[module_of(file)] += own
    whole = sum(seconds.values())
    parts = sorted(seconds.items(), key=lambda module: -module[1])
    return whole / count, {name: part / whole for name, part in parts}


def module_of(file: str) -> str:
    """Return the name of a file's module in the tables."""
    path = Path(file)
    for folder, package in _PACKAGES.items():
        if path.is_relative_to(folder):
            inside = path.relative_to(folder).as_posix()
            return f"{package}/{inside}" if package != pydantic.__name__ else package
    return _REST


def table(title: str, plain: Mapping[str, float], ours: Mapping[str, float], ratio: float) -> Iterator[str]:
    """Yield the lines of one workload: the modules with the largest shares of either side."""
    yield f"{title}:"
    yield ""
    yield f"| module | plain SDK | kantan_agents (whole run: {ratio:.2f} of the plain SDK) |"
    yield "| --- | ---: | ---: |"
    most = sorted({*plain, *ours}, key=lambda name: (-plain.get(name, 0) - ratio * ours.get(name, 0), name))
    for name in most[:_SHOWN]:
        # Both columns are shares of the plain SDK's run, so that they can be compared.
        yield f"| {name} | {plain.get(name, 0):.0%} | {ratio * ours.get(name, 0):.0%} |"
    own = ratio * sum(part for name, part in ours.items() if name.startswith("kantan_agents/"))
    yield f"| all of kantan_agents | 0% | {own:.0%} |"
    yield ""


async def holdings(side: int, count: int) -> dict[str, float]:
    """Return the bytes that each module holds per run that waits for its model.

    Args:
        side: 0 for the plain SDK, 1 for kantan_agents.
        count: Number of waiting runs.
    """
    gate = asyncio.Event()
    run = pair(WaitingModel(gate))[side]
    tasks = [asyncio.create_task(run())]  # creates what all runs share
    await _until_they_wait()
    tracemalloc.start()
    before = tracemalloc.take_snapshot()
    tasks += [asyncio.create_task(run()) for _ in range(count)]
    await _until_they_wait()
    after = tracemalloc.take_snapshot()
    tracemalloc.stop()
    gate.set()
    await asyncio.gather(*tasks)
    held: dict[str, float] = defaultdict(float)
    for difference in after.compare_to(before, "filename"):
        held[module_of(difference.traceback[0].filename)] += difference.size_diff / count
    return held


async def _until_they_wait() -> None:
    for _ in range(60):
        await asyncio.sleep(0)
    gc.collect()


def memory_table(plain: Mapping[str, float], ours: Mapping[str, float]) -> Iterator[str]:
    """Yield the lines on the memory of a waiting run, by the modules that hold most on either side."""
    yield "a run that waits for its model, bytes:"
    yield ""
    yield "| module | plain SDK | kantan_agents |"
    yield "| --- | ---: | ---: |"
    most = sorted({*plain, *ours}, key=lambda name: (-plain.get(name, 0) - ours.get(name, 0), name))
    own = [name for name in ours if name.startswith("kantan_agents/")]
    for name in [name for name in most if name not in own][:_SHOWN]:
        yield f"| {name} | {plain.get(name, 0):,.0f} | {ours.get(name, 0):,.0f} |"
    for name in sorted(own, key=lambda name: -ours[name])[:_SHOWN]:
        yield f"| {name} | 0 | {ours[name]:,.0f} |"
    yield f"| all of kantan_agents | 0 | {sum(ours[name] for name in own):,.0f} |"
    yield f"| everything | {sum(plain.values()):,.0f} | {sum(ours.values()):,.0f} |"
    yield ""


async def main(runs: int) -> str:
    """Return the tables as Markdown."""
    set_trace_processors([])
    where = environment("openai-agents", "openai")
    lines = [f"Parts of the time that the plain SDK's run takes, under `cProfile`. {where}.", ""]
    for title, both in workloads().items():
        (seconds, of_plain), (other, of_ours) = await shares(both, runs)
        lines += table(title, of_plain, of_ours, other / seconds)
    lines += memory_table(await holdings(0, _HELD), await holdings(1, _HELD))
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=300, help="runs that are profiled (default 300)")
    parser.add_argument("--write", action="store_true", help=f"write them into results/{PAGE.name}")
    arguments = parser.parse_args()
    tables = asyncio.run(main(max(1, arguments.runs)))
    sys.stdout.write(tables)
    if arguments.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_results(page, tables, COMMAND), encoding="utf-8")
