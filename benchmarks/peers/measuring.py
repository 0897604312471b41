"""Measures each kind of workload: which processes get which tasks, and which are compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import attrs

from benchmarks.peers.catalog import Workload
from benchmarks.peers.compared import CONTROL, PLAIN
from benchmarks.peers.fleet import Fleet, Worker, WorkerError
from benchmarks.peers.frameworks.facts import TRACE_FILE_VARIABLE
from benchmarks.peers.imports import import_seconds
from benchmarks.peers.rounds import Measure, Pair, take_turns
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.trace_databases import Recorded, TraceDatabases, recorded


@attrs.define
class UsageMetrics:
    """The measurements of one framework in one workload."""

    pairs: list[Pair] = attrs.field(factory=list)
    late: list[tuple[float, float]] = attrs.field(factory=list)
    absent: str | None = None


@attrs.define
class Bench:
    """Measures workloads and stores the figures.

    Attributes:
        fleet: Starts processes.
        sizes: How much to measure.
        names: The frameworks, the plain SDK first.
        traces: The files in which runs are recorded.
        figures: The figures by workload and framework; the control has figures too.
        versions: Names and versions of packages, by framework.
        failed: Workloads that could not be measured, with the reason.
    """

    fleet: Fleet
    sizes: Sizes
    names: tuple[str, ...]
    traces: TraceDatabases
    figures: dict[str, dict[str, UsageMetrics]] = attrs.field(factory=dict)
    versions: dict[str, dict[str, str]] = attrs.field(factory=dict)
    failed: dict[str, str] = attrs.field(factory=dict)
    _counts: dict[str, int] = attrs.field(factory=dict)

    def measure(self, workloads: Iterable[Workload], say: Callable[[str], None]) -> None:
        """Measure all ``workloads`` in all generations.

        If a process dies or a run has a wrong outcome, its workload is left out, and the others continue in
        new processes.

        Raises:
            WorkerError: The processes do not start.
        """
        wanted = [*workloads]
        for generation in range(self.sizes.generations):
            waiting = [workload for workload in wanted if workload.id not in self.failed]
            while waiting:
                say(f"generation {generation + 1} of {self.sizes.generations}: starting the processes")
                self._measure(waiting, generation, say)

    def _measure(self, waiting: list[Workload], generation: int, say: Callable[[str], None]) -> None:
        """Measure the waiting workloads until one fails."""
        kinds: dict[str, Callable[[Workload, Mapping[str, Worker], int], None]] = {
            "held": self._held,
            "traced": self._traced,
            "import": self._import,
        }
        processes = {name: name for name in self.names} | {CONTROL: PLAIN}
        with self.fleet.started(processes, generation) as workers:
            self.versions = {name: workers[name].hello["versions"] for name in self.names}
            while waiting:
                workload = waiting.pop(0)
                start = time.perf_counter()
                try:
                    kinds.get(workload.kind, self._timed)(workload, workers, generation)
                except WorkerError as error:
                    self.failed[workload.id] = str(error)
                    self.figures.pop(workload.id, None)
                    say(f"  FAILED {workload.id}: {error}")
                    return  # one of the processes may be dead, or in the middle of something
                say(f"  {workload.id}: {time.perf_counter() - start:.1f} s")

    def of(self, workload: Workload, name: str) -> UsageMetrics:
        """Return the figures of a framework, or of the control, in a workload."""
        return self.figures.setdefault(workload.id, {}).setdefault(name, UsageMetrics())

    def _present(self, workload: Workload, workers: Mapping[str, Worker]) -> list[str]:
        """Return the keys of the frameworks that have ``workload``, and record why the others do not."""
        present = []
        for key, worker in workers.items():
            if worker.has(workload.entry):
                present.append(key)
            else:
                self.of(workload, key).absent = worker.hello["absent"][workload.entry]
        return present

    def _timed(self, workload: Workload, workers: Mapping[str, Worker], generation: int) -> None:
        base, *others = self._present(workload, workers)
        if workload.id not in self._counts:
            _batch(workers[base], workload, self.sizes, 1)()
            few = self._within(self.sizes.batch_seconds, workload, workers[base])
            self._counts[workload.id] = self._within(self.sizes.batch_seconds, workload, workers[base], few)
        count = self._counts[workload.id]
        _batch(workers[base], workload, self.sizes, count)()  # warms up
        for key in others:
            fewer = min(count, self._within(self.sizes.longest_seconds, workload, workers[key]))
            plain, other = (_batch(workers[side], workload, self.sizes, fewer) for side in (base, key))
            taken = other() * self._runs_of(workload)
            # Long batches have less noise, so fewer are enough.
            is_long = taken > self.sizes.longest_seconds
            pairs = self.sizes.long_pairs if is_long else self.sizes.pairs
            self.of(workload, key).pairs += take_turns(plain, other, pairs)
        for key in (base, *others):
            if workload.kind == "at_once":
                self.of(workload, key).late.append(self._late(workload, workers[key]))
            workers[key].ask("forget")

    def _within(self, seconds: float, workload: Workload, worker: Worker, tried: int = 1) -> int:
        """Return how many runs fill the given seconds, at least one, estimated from a batch of ``tried``."""
        taken = _batch(worker, workload, self.sizes, tried)() * self._runs_of(workload)
        return max(1, round(seconds / taken))

    def _runs_of(self, workload: Workload) -> int:
        """Return the number of runs that count as one."""
        return self.sizes.of(workload) if workload.kind == "at_once" else 1

    def _late(self, workload: Workload, worker: Worker) -> tuple[float, float]:
        size, seconds = self.sizes.of(workload), self.sizes.late_seconds
        median, high = worker.ask("late", workload=workload.entry, size=size, seconds=seconds)
        return median, high

    def _held(self, workload: Workload, workers: Mapping[str, Worker], generation: int) -> None:
        if generation:
            return  # the number of bytes is the same each time and in any process
        base, *others = (key for key in self._present(workload, workers) if key != CONTROL)
        count = self.sizes.of(workload)
        held = {
            key: float(workers[key].ask("held", workload=workload.entry, count=count))
            for key in (base, *others)
        }
        for key in others:
            self.of(workload, key).pairs.append(Pair(held[base], held[key]))

    def _import(self, workload: Workload, workers: Mapping[str, Worker], generation: int) -> None:
        # The workers have already written the bytecode.
        measures = {
            key: partial(
                import_seconds,
                key,
                self.fleet.pythons[PLAIN if key == CONTROL else key],
                worker.hello["import"],
            )
            for key, worker in workers.items()
        }
        for key in workers:
            if key != PLAIN:
                pairs = take_turns(measures[PLAIN], measures[key], self.sizes.long_pairs)
                self.of(workload, key).pairs += pairs

    def _traced(self, workload: Workload, workers: Mapping[str, Worker], generation: int) -> None:
        for name in self._present(workload, workers):
            if name == CONTROL:
                continue
            path = self.traces.path(name, self.sizes.of(workload), generation)
            before = recorded(path)
            untraced, traced = f"{name}, untraced", f"{name}, traced"
            variables = {TRACE_FILE_VARIABLE: str(path)}
            with self.fleet.started({untraced: name, traced: name}, generation, **variables) as two:
                base = _Lasting(two[untraced], "untraced", self.sizes.traced_seconds)
                other = _Lasting(two[traced], "traced", self.sizes.traced_seconds)
                self.of(workload, name).pairs += take_turns(base, other, self.sizes.long_pairs)
            _check_recorded(name, recorded(path) - before, other.runs)


@attrs.define
class _Lasting:
    """A measure with batches of a minimum duration; counts its runs."""

    worker: Worker
    entry: str
    seconds: float
    runs: int = 0

    def __call__(self) -> float:
        answer = self.worker.ask("batch_for", workload=self.entry, seconds=self.seconds)
        self.runs = answer["runs"]
        return float(answer["seconds"])


def _batch(worker: Worker, workload: Workload, sizes: Sizes, count: int) -> Measure:
    task: dict[str, Any] = {"do": "batch", "workload": workload.entry, "count": count}
    if workload.kind == "construct":
        task["do"] = "construct"
    if workload.kind == "at_once":
        task |= {"do": "at_once", "size": sizes.of(workload)}
    return lambda: float(worker.ask(**task))


def _check_recorded(name: str, new: Recorded, runs: int) -> None:
    # Each run of the workload records the same spans, one of which is its model's.
    if new.traces != runs or new.spans % runs or not new.spans:
        raise WorkerError(f"{name} has recorded {new.traces} of {runs} runs, with {new.spans} spans")
