"""Measures the promises of the statistics of evaluations: coverage, false alarms, time and memory.

    python benchmarks/statistics.py [--quick] [--repeats N] [--workers 2]

Each figure is from that many data sets with a known truth. Coverage is the share of the 95 % intervals that
contain it; intervals that are missing because nothing varies do not count. A false alarm is a p below 5 %
where there is no difference. A promise is missed if a figure is worse by more than two of its standard
errors. Situations in brackets are shown without a promise. The exit code is 1 if a promise is missed (except
with ``--quick``, which takes a minute and whose figures are not precise).
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":
    # Not this folder, where this file would hide the module of the same name in the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import resource
import time

import numpy as np
from rich.console import Console

from benchmarks.dependent_results import dependent
from benchmarks.measure import Rows
from benchmarks.situations import JUDGED, PAIRED, SYMMETRIC, Floats, labelled
from kantan_agents.lab.evaluation.statistics import (
    Interval,
    corrected_mean,
    mcnemar,
    paired_difference,
    paired_p,
    sign_flip_p,
)

SIZES = (10, 20, 30, 50, 100, 200)
LABELS = (30, 50, 100, 200)
COVERAGE, CORRECTED_COVERAGE, ALARMS = 0.94, 0.94, 0.05
RESAMPLES = 1_000
SECONDS, MEGABYTES = 1.0, 300.0
QUICK, WHOLE = 200, 10_000
_RATE = 0.6

Simulation = Callable[[int, int], float]
"""Returns a share from the number of data sets and the size of each."""


class Row(NamedTuple):
    """A line of the table: a share for each size, what is promised, and of how many it is the worst."""

    statistic: str
    situation: str
    simulate: Simulation
    sizes: Sequence[int]
    least: float | None = None
    most: float | None = None
    parts: int = 1

    def misses(self, share: float, repeats: int, *, errors: float = 2.0) -> bool:
        """Return whether a share is worse than promised by more than so many of its standard errors.

        Each of the parts of which it is the worst has its part of the repeats.
        """
        repeats //= self.parts
        if self.least is not None:
            return share < self.least - errors * math.sqrt(self.least * (1 - self.least) / repeats)
        goal = self.most if self.most is not None else 1.0
        return share > goal + errors * math.sqrt(goal * (1 - goal) / repeats)


def paired_coverage(situation: int, repeats: int, size: int) -> float:
    """Return the share of intervals of paired differences that contain the truth."""
    _, draw, truth, _ = PAIRED[situation]
    random = np.random.default_rng([situation, size])
    found = []
    for seed in range(repeats):
        values, clusters = draw(random, size)
        found.append(paired_difference(values, clusters, resamples=RESAMPLES, seed=seed).interval)
    return _covered(found, truth)


def corrected_coverage(situation: int, repeats: int, size: int) -> float:
    """Return the share of intervals of corrected means that contain the truth."""
    random = np.random.default_rng([situation, size])
    drawn = (labelled(JUDGED[situation], random, size) for _ in range(repeats))
    return _covered([corrected_mean(*one).interval for one in drawn], JUDGED[situation].truth)


def sign_flip_alarms(situation: int, repeats: int, size: int) -> float:
    """Return the share of sign-flip tests below 5 % where there is no difference."""
    random = np.random.default_rng([situation, size])
    drawn = (SYMMETRIC[situation].draw(random, size) for _ in range(repeats))
    found = [sign_flip_p(*one, resamples=RESAMPLES, seed=seed) for seed, one in enumerate(drawn)]
    return float(np.mean(np.array(found) < ALARMS))


def mcnemar_alarms(repeats: int, size: int) -> float:
    """Return the share of McNemar's tests below 5 % where there is no difference."""
    random = np.random.default_rng(size)
    drawn: list[Floats] = [(random.random((2, size)) < _RATE).astype(np.float64) for _ in range(repeats)]
    return float(np.mean(np.array([mcnemar(a, b).p for a, b in drawn]) < ALARMS))


def _covered(intervals: Sequence[Interval | None], truth: float) -> float:
    known = [one for one in intervals if one is not None]
    # Discrete data meet a bound exactly, and rounding may not decide.
    return float(np.mean([one.low - 1e-9 <= truth <= one.high + 1e-9 for one in known]))


def rows() -> list[Row]:
    """Return all lines of the table."""
    found = [
        Row(
            "paired difference, coverage",
            situation.name,
            partial(paired_coverage, number),
            SIZES,
            least=COVERAGE if situation.is_promised else None,
        )
        for number, situation in enumerate(PAIRED)
    ]
    found += [
        Row("sign flip, false alarms", situation.name, partial(sign_flip_alarms, number), SIZES, most=ALARMS)
        for number, situation in enumerate(SYMMETRIC)
    ]
    found.append(Row("McNemar, false alarms", "yes or no", mcnemar_alarms, SIZES, most=ALARMS))
    found += [
        Row(
            "corrected mean, coverage",
            situation.name,
            partial(corrected_coverage, number),
            LABELS,
            least=CORRECTED_COVERAGE if situation.is_promised else None,
        )
        for number, situation in enumerate(JUDGED)
    ]
    return found + [Row(*one) for one in dependent()]


def speed() -> tuple[float, float]:
    """Return the seconds of a comparison of 10,000 pairs, and the peak of memory in MB."""
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 10_000))
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        paired_difference(b - a, resamples=10_000)
        paired_p(a, b, resamples=10_000)
        taken.append(time.perf_counter() - began)
    return min(taken), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(console: Console, repeats: int, workers: int) -> list[str]:
    """Print all shares, each line as soon as it is known; return which promises are missed."""
    lines = rows()
    console.print(f"\n{repeats:,} data sets each, %")
    sizes = sorted({size for row in lines for size in row.sizes})
    headings = ("situation", *(f"n={size}" for size in sizes))
    table = Rows(console, "statistic", *headings, widths=(30, 30, *(7 for _ in sizes)))
    missed: list[str] = []
    shares = _shares([partial(row.simulate, repeats, size) for row in lines for size in row.sizes], workers)
    for row in lines:
        cells = dict.fromkeys(sizes, "")
        for size in row.sizes:
            share = next(shares)
            is_missed = row.misses(share, repeats)
            cells[size] = f"{100 * share:.1f}" + ("!" if is_missed else "")
            missed += [f"{row.statistic}, {row.situation}, n={size}"] if is_missed else []
        is_promised = row.least is not None or row.most is not None
        situation = row.situation if is_promised else f"({row.situation})"
        table.row(row.statistic, situation, *cells.values())
    return missed


def _shares(simulations: Sequence[Callable[[], float]], workers: int) -> Iterator[float]:
    if workers == 1:
        yield from (simulate() for simulate in simulations)
        return
    with ProcessPoolExecutor(workers) as pool:
        for future in [pool.submit(simulate) for simulate in simulations]:
            yield future.result()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, help="data sets of each situation (10,000; quick: 200)")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 140)
    seconds, megabytes = speed()
    console.print(
        f"10,000 pairs, 10,000 resamples, interval and p: {seconds:.2f} s, {megabytes:.0f} MB at most"
    )
    missed = measure(console, options.repeats or (QUICK if options.quick else WHOLE), options.workers)
    missed += [f"{seconds:.2f} s, promised {SECONDS}"] if seconds > SECONDS else []
    missed += [f"{megabytes:.0f} MB, promised {MEGABYTES}"] if megabytes > MEGABYTES else []
    for one in missed:
        console.print(f"missed: {one}")
    return 1 if missed and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
