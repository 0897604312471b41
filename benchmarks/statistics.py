"""Measures the promises of the statistics of evaluations: coverage, false alarms, time and memory.

    python benchmarks/statistics.py [--quick] [--repeats N] [--workers 2] [--only TEXT]

Each figure is from that many data sets with a known truth; coverage of yes or no is exact, by enumeration.
Coverage is the share of the 95 % intervals that contain the truth; where there is no interval, none counts,
and "-" says that there is none in 99 of 100 data sets. A false alarm is a p below 5 % where there is no
difference. Power is how often a difference is found after as many more cases as `more_cases` has stated. A
promise is missed if a figure is worse by more than two of its standard errors. Situations in brackets are
shown without a promise. The exit code is 1 if a promise is missed (except with ``--quick``, which takes a
minute and whose figures are not precise). ``benchmarks/looks.py`` has the lines about repeated looks and
several variants.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":
    # Not this folder, where this file would hide the module of the same name in the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import resource
import time

import numpy as np
from rich.console import Console

from benchmarks import looks
from benchmarks.dependent_results import dependent
from benchmarks.measure import Rows
from benchmarks.situations import JUDGED, PAIRED, SYMMETRIC, YES_NO, Floats, Random, labelled
from kantan_agents.lab.evaluation.statistics import (
    Interval,
    corrected_mean,
    holm,
    mcnemar,
    more_cases,
    paired_difference,
    paired_interval,
    paired_p,
    paired_proportions,
    sign_flip_p,
)

SIZES = (5, 8, 10, 20, 30, 50, 100, 200)
LABELS = (30, 50, 100, 200)
PILOTS = (8, 10, 20, 30, 50)
COVERAGE, CORRECTED_COVERAGE, ALARMS, POWER = 0.93, 0.94, 0.05, 0.75
METRICS = 5
"""How many metrics are compared by default: one score, and failures, latency, tokens and cost."""
RESAMPLES = 1_000
SECONDS, MEGABYTES = 1.0, 300.0
QUICK, WHOLE = 200, 4_000
_RATE = 0.6
_FEWEST_KNOWN = 0.01
_WIDTHS = (28, 32, *(7 for _ in SIZES))

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
        repeats = max(1, repeats // self.parts)
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


@cache
def _tables(size: int) -> tuple[Floats, Floats, Floats]:
    """Return all tables of so many cases, how many samples give each, and its interval.

    Returns:
        Shape (tables, 3): only a, only b, the rest. Shape (tables,): logarithms of the multinomial
        coefficients. Shape (tables, 2): the bounds.
    """
    counts, logs, bounds = [], [], []
    for only_a in range(size + 1):
        for only_b in range(size + 1 - only_a):
            a = np.repeat([1.0, 0.0, 0.0], [only_a, only_b, size - only_a - only_b])
            b = np.repeat([0.0, 1.0, 0.0], [only_a, only_b, size - only_a - only_b])
            interval = paired_proportions(a, b).interval
            assert interval is not None
            counts.append([only_a, only_b, size - only_a - only_b])
            logs.append(math.lgamma(size + 1) - sum(math.lgamma(one + 1) for one in counts[-1]))
            bounds.append(interval)
    return np.array(counts, dtype=np.float64), np.array(logs), np.array(bounds)


def exact_coverage(only_a: float, only_b: float, size: int) -> float:
    """Return the exact coverage of yes or no if so many cases are passed by one of both only."""
    counts, logs, bounds = _tables(size)
    # 1e-300 instead of 0, whose power of 0 is 1 too.
    chances = np.maximum([only_a, only_b, 1.0 - only_a - only_b], 1e-300)
    truth = only_b - only_a
    contains = (bounds[:, 0] - 1e-9 <= truth) & (truth <= bounds[:, 1] + 1e-9)
    return float(np.exp(logs + counts @ np.log(chances))[contains].sum())


def yes_no_coverage(rates: tuple[float, float, float], _repeats: int, size: int) -> float:
    """Return the exact coverage for these pass rates of a and b and their correlation."""
    a, b, correlation = rates
    both = a * b + correlation * math.sqrt(a * (1 - a) * b * (1 - b))
    return exact_coverage(a - both, b - both, size)


def worst_coverage(_repeats: int, size: int) -> float:
    """Return the lowest exact coverage over a grid of all rates and correlations."""
    differing = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, *np.linspace(0.1, 1.0, 19))
    shares = (0.0, 0.01, 0.03, *np.linspace(0.05, 0.5, 10))
    return min(exact_coverage(one * share, one * (1 - share), size) for one in differing for share in shares)


def score_pairs(random: Random, count: int) -> tuple[Floats, Floats]:
    """Draw scores whose difference is half of its standard deviation."""
    return np.zeros(count), random.normal(0.5, 1.0, size=count)


def answer_pairs(random: Random, count: int) -> tuple[Floats, Floats]:
    """Draw yes or no that differs in 30 % of all cases, by 0.2 on average."""
    differences = random.choice((-1.0, 0.0, 1.0), size=count, p=(0.05, 0.7, 0.25))
    return (differences < 0).astype(np.float64), (differences > 0).astype(np.float64)


def stated_power(
    draw: Callable[[Random, int], tuple[Floats, Floats]], wanted: float, metrics: int, repeats: int, size: int
) -> float:
    """Return how often a difference is found after as many more cases as so many cases have stated.

    The other metrics do not differ, which is the least favourable for Holm's method.
    """
    random = np.random.default_rng([metrics, size])
    found = []
    for seed in range(repeats):
        a, b = draw(random, size)
        more = more_cases(b - a, wanted, metrics=metrics)
        if more is None:
            continue
        a, b = (np.concatenate(sides) for sides in zip((a, b), draw(random, more), strict=True))
        pairs = [(a, b), *random.normal(size=(metrics - 1, 2, len(a)))]
        p = holm([paired_p(*pair, resamples=RESAMPLES, seed=seed).p for pair in pairs])[0]
        interval = paired_interval(a, b, resamples=RESAMPLES, seed=seed).interval if p <= ALARMS else None
        found.append(p <= ALARMS and (interval is None or not interval.low <= 0.0 <= interval.high))
    return float(np.mean(found))


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
    if len(known) < _FEWEST_KNOWN * len(intervals):
        return math.nan
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
        Row("yes or no, exact coverage", name, partial(yes_no_coverage, rates), SIZES, least=COVERAGE)
        for name, rates in YES_NO.items()
    ]
    found.append(
        Row("yes or no, exact coverage", "the worst of 338 mixtures", worst_coverage, SIZES, least=COVERAGE)
    )
    found += [
        Row("power as stated", name, partial(stated_power, draw, wanted, metrics), PILOTS, least=POWER)
        for name, draw, wanted, metrics in (
            ("scores", score_pairs, 0.5, METRICS),
            ("scores, the only metric", score_pairs, 0.5, 1),
            ("yes or no", answer_pairs, 0.2, METRICS),
        )
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
    return [*found, *(Row(*line) for line in looks.lines()), *(Row(*line) for line in dependent())]


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


def measure(console: Console, repeats: int, workers: int, only: str = "") -> list[str]:
    """Print all shares, each line as soon as it is known; return which promises are missed."""
    lines = [row for row in rows() if only in f"{row.statistic}: {row.situation}"]
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
            cells[size] = "-" if math.isnan(share) else f"{100 * share:.1f}" + ("!" if is_missed else "")
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
    parser.add_argument("--repeats", type=int, help="data sets of each situation (4,000; quick: 200)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="a part of 'statistic: situation', for some lines only")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 140)
    seconds, megabytes = speed()
    console.print(
        f"10,000 pairs, 10,000 resamples, interval and p: {seconds:.2f} s, {megabytes:.0f} MB at most"
    )
    repeats = options.repeats or (QUICK if options.quick else WHOLE)
    missed = measure(console, repeats, options.workers, options.only)
    missed += [f"{seconds:.2f} s, promised {SECONDS}"] if seconds > SECONDS else []
    missed += [f"{megabytes:.0f} MB, promised {MEGABYTES}"] if megabytes > MEGABYTES else []
    for one in missed:
        console.print(f"missed: {one}")
    return 1 if missed and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
