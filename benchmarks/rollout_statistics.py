"""Measures the promises of the statistics of rollouts: false alarms, and the price in sample size.

    python -m benchmarks.rollout_statistics [--quick] [--repeats N] [--workers 2]

A false alarm is a verdict at 5 % at any time in a rollout of 2,000 units without any effect beyond what is
allowed. One looks after each unit. The t-test beside it is Welch's, one-sided at 5 %, and is looked at every
50 units. The price is the sample size at which 80 % of all rollouts with an effect have a verdict. The fixed
size is that of a one-sided z-test at 5 % with 80 % power, which is looked at once, at its end. A promise is
missed if false alarms are above 5 % by more than two standard errors. The exit code is 1 if a promise is
missed.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import NormalDist
from typing import NamedTuple, TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.rollout_situations import (
    COST_FACTOR,
    GRADED,
    GUARDS,
    HEAVY,
    LATENCY_FACTOR,
    SHARES,
    YES_OR_NO,
    Flags,
    Metric,
    better,
    dearer,
    drawn,
    slower,
)
from benchmarks.rollout_users import BEHAVIORS, alarms
from benchmarks.situations import Floats
from kantan_agents.lab.evaluation.statistics.distributions import t_quantile
from kantan_agents.lab.rollout.evidence import (
    Evidence,
    difference_interval,
    mean_difference,
    more_observations,
    relative_increase,
    sample_ratio,
    tail_increase,
)

ALPHA, POWER = 0.05, 0.8
UNITS, LOOK_EVERY = 2_000, 50
QUICK, WHOLE = 100, 4_000
LONGEST = 6
GUARDS_AT_ONCE = 4
SECONDS = 1.0
_FEWEST = 2
_NORMAL = NormalDist().inv_cdf(1.0 - ALPHA)
_Result = TypeVar("_Result")


class Alarms(NamedTuple):
    """Shares of rollouts with a false alarm; None for a test that is not there."""

    evidence: float
    t_test: float | None


class Price(NamedTuple):
    """Sample sizes.

    Attributes:
        half: At which half of all rollouts have a verdict.
        most: At which 80 % have one.
        most_of_four: At which 80 % have one if it is one of four guards, so at a quarter of alpha.
        fixed: That of a fixed test.
    """

    half: float
    most: float
    most_of_four: float
    fixed: int


class Effect(NamedTuple):
    """A true effect that a guard should find.

    Attributes:
        name: In words.
        metric: What is measured.
        test: The guard.
        new: Level of the new arm; that of the control is 0.7 for scores and 1 for heavy tails.
        share: Probability of the new arm.
        fixed: Sample size of the fixed test.
    """

    name: str
    metric: Metric
    test: Callable[[Floats, Flags, Floats], Evidence]
    new: float
    share: float
    fixed: int


def guard_alarms(number: int, shares: str, drifts: bool, repeats: int) -> Alarms:
    """Return how often a guard and the t-test raise a false alarm at the edge of what is allowed."""
    guard = GUARDS[number]
    random = np.random.default_rng([number, list(SHARES).index(shares), drifts])
    share = SHARES[shares](UNITS)
    control = guard.metric.control(UNITS, drifts=drifts)
    new = guard.allowed(control)
    found, t_found = 0, 0
    for _ in range(repeats):
        values, is_new = drawn(random, guard.metric, share, control, new)
        found += guard.test(values, is_new, share).rejects(ALPHA)
        if guard.factor is not None:
            signs = -1.0 if guard.name == "score is worse" else 1.0
            outcomes = signs * np.where(is_new, values, guard.factor * values)
            t_found += t_test_rejects(outcomes, is_new)
    return Alarms(found / repeats, None if guard.factor is None else t_found / repeats)


def ratio_alarms(shares: str, repeats: int) -> Alarms:
    """Return how often the check of the sample ratio raises a false alarm."""
    random = np.random.default_rng(list(SHARES).index(shares))
    share = SHARES[shares](UNITS)
    found = [sample_ratio(random.random(UNITS) < share, share).rejects(ALPHA) for _ in range(repeats)]
    return Alarms(float(np.mean(found)), None)


def interval_misses(shares: str, drifts: bool, repeats: int) -> Alarms:
    """Return how often an interval of a difference of 0.05 ever leaves it out.

    The interval is the set of margins that neither direction has rejected, so only the true one is tried.
    """
    random = np.random.default_rng([list(SHARES).index(shares), drifts])
    share, control, difference = SHARES[shares](UNITS), YES_OR_NO.control(UNITS, drifts=drifts), 0.05
    found = 0
    for _ in range(repeats):
        values, is_new = drawn(random, YES_OR_NO, share, control, control + difference)
        above = mean_difference(values, is_new, share, lowest=0.0, highest=1.0, margin=difference)
        below = mean_difference(-values, is_new, share, lowest=-1.0, highest=0.0, margin=-difference)
        found += above.rejects(ALPHA / 2.0) or below.rejects(ALPHA / 2.0)
    return Alarms(found / repeats, None)


def t_test_rejects(values: Floats, is_new: Flags) -> bool:
    """Return whether Welch's t-test of a higher mean is ever below 5 %, if one looks every 50 units."""
    looks = np.arange(LOOK_EVERY, len(values) + 1, LOOK_EVERY) - 1
    count, mean, error = [], [], []
    for arm in (is_new, ~is_new):
        number = np.cumsum(arm)[looks]
        average = np.cumsum(values * arm)[looks] / np.maximum(number, 1)
        squares = np.cumsum(values**2 * arm)[looks] - number * average**2
        count.append(number)
        mean.append(average)
        error.append(np.maximum(squares, 0.0) / np.maximum(number - 1, 1) / np.maximum(number, 1))
    total = error[0] + error[1]
    known = (np.minimum(*count) >= _FEWEST) & (total > 0.0)
    for look in np.flatnonzero(known):
        freedom = total[look] ** 2 / sum(error[arm][look] ** 2 / (count[arm][look] - 1.0) for arm in range(2))
        t = (mean[0][look] - mean[1][look]) / math.sqrt(total[look])
        # Beyond the quantile of the normal distribution first, which is lower and already known.
        if t > _NORMAL and t > t_quantile(1.0 - ALPHA, max(1, round(freedom))):
            return True
    return False


def effects() -> list[Effect]:
    """Return the effects whose price is measured."""
    found = []
    for share in (0.5, 0.1):
        for metric, new in ((YES_OR_NO, 0.8), (YES_OR_NO, 0.75), (GRADED, 0.7), (GRADED, 0.65)):
            old = sum(metric.levels) / 2.0
            size = fixed_size(new - old, metric.variance(new), metric.variance(old), share)
            name = f"{metric.name}, {old:.2f} to {new:.2f}"
            found.append(Effect(name, metric, better, new, share, size))
        for new in (1.5, 1.3):
            excess = (new - COST_FACTOR) * math.exp(0.5)
            size = fixed_size(excess, HEAVY.variance(new), COST_FACTOR**2 * HEAVY.variance(1.0), share)
            name = f"cost, {new:g} times, {COST_FACTOR:g} allowed"
            found.append(Effect(name, HEAVY, dearer, new, share, size))
        for new in (2.0, 1.5):
            slow = 1.0 - NormalDist().cdf(NormalDist().inv_cdf(0.95) - math.log(new / LATENCY_FACTOR))
            size = fixed_size(slow - 0.05, slow * (1.0 - slow), 0.05 * 0.95, share)
            name = f"latency, {new:g} times, {LATENCY_FACTOR:g} allowed"
            found.append(Effect(name, HEAVY, slower, new, share, size))
    return found


def fixed_size(difference: float, variance_new: float, variance_control: float, share: float) -> int:
    """Return the sample size of a one-sided z-test with this power, both arms together.

    Source: Cohen, Statistical Power Analysis for the Behavioral Sciences (2nd edition, 1988), section 2.4.
    """
    errors = NormalDist().inv_cdf(1.0 - ALPHA) + NormalDist().inv_cdf(POWER)
    variance = variance_new / share + variance_control / (1.0 - share)
    return math.ceil(errors**2 * variance / difference**2)


def price(number: int, repeats: int) -> Price:
    """Return at which sample sizes a guard finds an effect; infinity beyond six times the fixed size."""
    effect = effects()[number]
    random = np.random.default_rng(number)
    size = LONGEST * effect.fixed
    share = np.full(size, effect.share)
    control = effect.metric.control(size, drifts=False)
    taken = np.empty((2, repeats))
    for repeat in range(repeats):
        values, is_new = drawn(random, effect.metric, share, control, np.full(size, effect.new))
        found = effect.test(values, is_new, share)
        for row, alpha in zip(taken, (ALPHA, ALPHA / GUARDS_AT_ONCE), strict=True):
            row[repeat] = found.rejected_at(alpha) or math.inf
    half, most = np.quantile(taken[0], (0.5, POWER), method="higher")
    most_of_four = np.quantile(taken[1], POWER, method="higher")
    return Price(float(half), float(most), float(most_of_four), effect.fixed)


def speed() -> float:
    """Return the seconds of all tests, an interval and a forecast of 100,000 observations."""
    random = np.random.default_rng(0)
    share = np.repeat([0.1, 0.5], 50_000)
    is_new = random.random(100_000) < share
    scores = YES_OR_NO.draw(random, np.full(100_000, 0.7))
    costs = HEAVY.draw(random, np.ones(100_000))
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        sample_ratio(is_new, share)
        mean_difference(scores, is_new, share, lowest=0.0, highest=1.0)
        mean_difference(-scores, is_new, share, lowest=-1.0, highest=0.0)
        relative_increase(costs, is_new, share, factor=COST_FACTOR)
        tail_increase(costs, is_new, share, factor=LATENCY_FACTOR)
        difference_interval(scores, is_new, share, lowest=0.0, highest=1.0)
        more_observations(scores, is_new, share, lowest=0.0, highest=1.0)
        taken.append(time.perf_counter() - began)
    return min(taken)


def alarm_table(repeats: int, workers: int) -> tuple[Table, list[str]]:
    """Return the table of false alarms, and which promises are missed."""
    cells: dict[tuple[str, str, str], Callable[[], Alarms]] = {}
    for shares in SHARES:
        for drifts in (False, True):
            drift = "drifts" if drifts else "steady"
            for number, guard in enumerate(GUARDS):
                name = f"{guard.name}, {guard.metric.name}"
                cells[name, drift, shares] = partial(guard_alarms, number, shares, drifts, repeats)
            name = "interval of the difference"
            cells[name, drift, shares] = partial(interval_misses, shares, drifts, repeats)
        cells["sample ratio", "", shares] = partial(ratio_alarms, shares, repeats)
    found = dict(zip(cells, _computed(list(cells.values()), workers), strict=True))
    title = f"False alarms, t-test in brackets, {repeats:,} rollouts each, %"
    table = Table("guard", "metric", *SHARES, title=title)
    for name, drift in dict.fromkeys((name, drift) for name, drift, _ in found):
        table.add_row(name, drift, *(_cell(found[name, drift, shares]) for shares in SHARES))
    most = ALPHA + 2.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / repeats)
    return table, [" ".join(key) for key, alarms in found.items() if alarms.evidence > most]


def users_table(repeats: int, workers: int) -> tuple[Table, list[str]]:
    """Return the table of false alarms with users who come again, and which promises are missed."""
    rows = [(number, at_edge) for number in range(len(BEHAVIORS)) for at_edge in (False, True)]
    jobs = [partial(alarms, number, at_edge=at_edge, repeats=repeats) for number, at_edge in rows]
    title = f"False alarms with users who come again, {repeats:,} rollouts each, %"
    table = Table("users", "new arm", "error", "cost", "latency", title=title)
    missed = []
    most = ALPHA + 2.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / repeats)
    for (number, at_edge), found in zip(rows, _computed(jobs, workers), strict=True):
        name, arm = BEHAVIORS[number].name, "as bad as allowed" if at_edge else "equal"
        table.add_row(name, arm, *(f"{100 * one:.1f}" for one in found))
        missed += [f"{name}, {arm}"] if max(found) > most else []
    return table, missed


def price_table(repeats: int, workers: int) -> Table:
    """Return the table of sample sizes."""
    title = f"Sample size, {repeats:,} rollouts each"
    table = Table("effect", "share", "half", "80 %", "80 %, 4 guards", "fixed", "price", title=title)
    lines = effects()
    prices = _computed([partial(price, number, repeats) for number in range(len(lines))], workers)
    for effect, one in zip(lines, prices, strict=True):
        sizes = [f"{size:,.0f}" for size in one]
        table.add_row(effect.name, f"{effect.share:.0%}", *sizes, f"{one.most / one.fixed:.1f}")
    return table


def _cell(alarms: Alarms) -> str:
    beside = "" if alarms.t_test is None else f" ({100 * alarms.t_test:.0f})"
    return f"{100 * alarms.evidence:.1f}{beside}"


def _computed(jobs: Sequence[Callable[[], _Result]], workers: int) -> list[_Result]:
    if workers == 1:
        return [job() for job in jobs]
    with ProcessPoolExecutor(workers) as pool:
        return [future.result() for future in [pool.submit(job) for job in jobs]]


def report(console: Console, repeats: int, workers: int) -> list[str]:
    """Print all tables, and return which promises are missed."""
    seconds = speed()
    table, missed = alarm_table(repeats, workers)
    console.print(table)
    table, of_users = users_table(max(1, repeats // 10), workers)
    console.print(table)
    missed += of_users
    console.print(price_table(max(1, repeats // 4), workers))
    console.print(f"100,000 observations, all tests, an interval and a forecast: {seconds:.2f} s")
    missed += [f"{seconds:.2f} s, promised {SECONDS}"] if seconds > SECONDS else []
    for one in missed:
        console.print(f"missed: {one}")
    return missed


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--repeats",
        type=int,
        help="rollouts of each kind (4,000; quick: 100), a tenth where users come again",
    )
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 120)
    repeats = options.repeats or (QUICK if options.quick else WHOLE)
    missed = report(console, repeats, options.workers)
    return 1 if missed and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
