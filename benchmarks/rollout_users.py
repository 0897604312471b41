"""Rollouts whose users come again: what each does, and how often a guard raises a false alarm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.situations import Floats, Random
from kantan_agents.lab.rollout.evidence.bets import Bets, Later, strongest
from kantan_agents.lab.rollout.evidence.differences import difference_bets
from kantan_agents.lab.rollout.evidence.relative import relative_bets
from kantan_agents.lab.rollout.evidence.tail import tail_bets

ALPHA = 0.05
USERS = 200
MARGIN, COST_FACTOR, LATENCY_FACTOR = 0.05, 1.1, 1.2
_LONGEST = 40


class Behavior(NamedTuple):
    """What users do.

    Attributes:
        name: In words.
        zipf: Whether the numbers of runs differ widely; else each has 6.
        retries: Whether a failed run is tried again soon.
        leaves: The probability of not coming back after a failed run.
        drifts: Whether everything becomes worse over time, for both arms.
        slow: How many times as long the runs of the new arm take.
        known: Whether the same users come at shares of 0, 10 and 50 %.
        differ: Whether the runs of some users fail far more often, with both arms.
    """

    name: str
    zipf: bool = False
    retries: bool = False
    leaves: float = 0.0
    drifts: bool = False
    slow: float = 1.0
    known: bool = False
    differ: bool = False


BEHAVIORS = (
    Behavior("come six times"),
    Behavior("heavy users", zipf=True),
    Behavior("retry after a failure", zipf=True, retries=True),
    Behavior("leave after a failure", zipf=True, leaves=0.7),
    Behavior("leave, and differ", zipf=True, leaves=0.7, differ=True),
    Behavior("drift", zipf=True, drifts=True),
    Behavior("slow new arm", zipf=True, drifts=True, slow=8.0),
    Behavior("known before the steps", zipf=True, drifts=True, known=True),
)


class Run(NamedTuple):
    """A run: its draw, when it began and ended in parts of the rollout, and what it was."""

    draw: int
    began: float
    ended: float
    failed: bool
    size: float


def _rate(kind: Behavior, at: float, difficulty: float) -> float:
    return min(0.9, (0.02 + 0.2 * at if kind.drifts else 0.1) * difficulty)


def draws_and_runs(
    random: Random, kind: Behavior, excess: float, factor: float, broken_at: float = math.inf
) -> tuple[Floats, Floats, Floats, list[list[Run]]]:
    """Return the arms, the shares and the steps of the draws, and the runs of each.

    Args:
        random: Where chance is from.
        kind: What users do.
        excess: By how much the new arm fails more often.
        factor: How many times as much it costs.
        broken_at: From when on each run of the new arm fails.
    """
    steps = ((0.0, 0.1), (1 / 3, 0.5)) if kind.known else ((0.0, 0.5),)
    arms, shares, of_step, runs = [], [], [], []
    for _ in range(USERS):
        number = min(_LONGEST, int(random.zipf(1.7))) if kind.zipf else 6
        times = np.sort(random.random(number) if kind.known else random.random() ** 2 + random.random(number))
        times /= 1.0 if kind.known else 2.0
        hashed, difficulty = random.random(), (9.0 if kind.differ and random.random() < 0.3 else 1.0)
        low, last = 0.0, -1
        pending = list(times[::-1])
        while pending:
            at = pending.pop()
            share = [one for start, one in steps if start <= at][-1]
            is_new = hashed < share
            if share != last:
                last = share
                draws = low < share and not (runs and is_new and low < 0)
                if draws:
                    arms.append(is_new)
                    shares.append((share - low) / (1.0 - low))
                    of_step.append(share)
                    runs.append([])
                low = 2.0 if is_new else share  # a new arm is kept: no later draw
            rate = _rate(kind, at, difficulty) + excess * is_new * (1 if difficulty == 1 else 0)
            failed = bool(random.random() < rate) or (is_new and at >= broken_at)
            took = 0.002 * random.lognormal() * (kind.slow if is_new and not failed else 1.0)
            size = random.lognormal() * (factor if is_new else 1.0) * (1 + at * kind.drifts)
            if draws:
                runs[-1].append(Run(len(runs) - 1, at, at + took, failed, size))
            if failed and kind.retries and len(runs[-1]) < 3 * _LONGEST:
                pending.append(at + took + 1e-4)
            if failed and random.random() < kind.leaves:
                break
    return np.array(arms, dtype=bool), np.array(shares), np.array(of_step), runs


def level(
    found: tuple[Floats, Floats, Floats, list[list[Run]]],
    value_of: Callable[[Run], float],
    test: Callable[..., Bets],
) -> float:
    """Return the logarithm of the evidence of a guard."""
    arms, shares, steps, runs = found
    order = np.argsort([one[0].began for one in runs])
    place = np.empty(len(order), dtype=int)
    place[order] = np.arange(len(order))
    first = [runs[number][0] for number in order]
    values = np.array([value_of(run) for run in first])
    times = 1e4 * np.array([run.began for run in first]), 1e4 * np.array([run.ended for run in first])
    later = sorted((run for one in runs for run in one[1:]), key=lambda run: run.began)
    bets = test(values, arms[order], shares[order], times=times)
    everyone = np.ones(len(order), dtype=bool)
    later_values = (
        Later(place[[run.draw for run in later]], np.array([value_of(run) for run in later]), steps[order])
        if later
        else Later(np.array([], dtype=int), np.array([]), steps[order])
    )
    return strongest(bets, values, everyone, later_values, everyone)


def failing(values, is_new, share, times):
    return difference_bets(values, is_new, share, lowest=0.0, highest=1.0, margin=MARGIN, times=times)


def dearer(values, is_new, share, times):
    return relative_bets(values, is_new, share, factor=COST_FACTOR, times=times)


def slower(values, is_new, share, times):
    return tail_bets(values, is_new, share, factor=LATENCY_FACTOR, times=times)


if __name__ == "__main__":
    import sys

    n = int(sys.argv[1])
    for number, kind in enumerate(BEHAVIORS):
        for name, excess, factor in (("equal", 0.0, 1.0), ("edge", MARGIN, 1.1)):
            random = np.random.default_rng([number, excess > 0])
            alarms = np.zeros(3)
            for _ in range(n):
                found = draws_and_runs(random, kind, excess, factor)
                alarms += [
                    level(found, lambda run: float(run.failed), failing) >= -math.log(ALPHA),
                    level(found, lambda run: run.size, dearer) >= -math.log(ALPHA),
                    level(found, lambda run: run.size, slower) >= -math.log(ALPHA),
                ]
            print(kind.name, name, alarms / n, flush=True)
