"""Rollouts whose users come again: false alarms of the guards, and how soon they see that later runs fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.situations import Random
from kantan_agents.lab.rollout.evidence.bets import Bets, Later, strongest
from kantan_agents.lab.rollout.evidence.differences import difference_bets
from kantan_agents.lab.rollout.evidence.relative import relative_bets
from kantan_agents.lab.rollout.evidence.tail import tail_bets

ALPHA = 0.05
USERS = 200
ERROR_MARGIN, COST_FACTOR, LATENCY_FACTOR = 0.05, 1.1, 1.2
_MOST_RUNS = 40
_SECONDS = 10_000.0
_LOOKS = 60
_DIFFICULT = 0.3


class Behavior(NamedTuple):
    """What users do.

    Attributes:
        name: In words.
        zipf: Whether the numbers of runs differ widely, up to 40; else each has 6.
        retries: Whether a failed run is tried again soon.
        leaves: The probability of not coming back after a failed run.
        drifts: Whether everything becomes worse over time, for both arms.
        slow: How many times as long the runs of the new arm take.
        known: Whether the same users come at shares of 0, 10 and 50 %.
        differ: Whether the runs of three users in ten fail nine times as often.
    """

    name: str
    zipf: bool = True
    retries: bool = False
    leaves: float = 0.0
    drifts: bool = False
    slow: float = 1.0
    known: bool = False
    differ: bool = False


BEHAVIORS = (
    Behavior("come six times", zipf=False),
    Behavior("heavy users"),
    Behavior("retry after a failure", retries=True),
    Behavior("leave after a failure", leaves=0.7),
    Behavior("leave, and some always fail", leaves=0.7, differ=True),
    Behavior("drift", drifts=True),
    Behavior("drift, slow new arm", drifts=True, slow=8.0),
    Behavior("drift, known before the steps", drifts=True, known=True),
)


class Run(NamedTuple):
    """A run: the number of its draw, when it began and ended in seconds, and what it was."""

    draw: int
    began: float
    ended: float
    failed: bool
    size: float


class Trial(NamedTuple):
    """A rollout: for each draw its arm, probability and step, and its runs."""

    arms: list[bool]
    chances: list[float]
    steps: list[float]
    runs: list[list[Run]]

    def until(self, time: float) -> Trial:
        """Return what has begun until a time."""
        kept = [n for n, runs in enumerate(self.runs) if runs[0].began < time]
        runs = [
            [one._replace(draw=m) for one in self.runs[n] if one.began < time] for m, n in enumerate(kept)
        ]
        return Trial(
            [self.arms[n] for n in kept], [self.chances[n] for n in kept], [self.steps[n] for n in kept], runs
        )


class Guard(NamedTuple):
    """A guard: its name, what it looks at, and its bets."""

    name: str
    value: Callable[[Run], float]
    bets: Callable[..., Bets]


GUARDS = (
    Guard(
        "error",
        lambda run: float(run.failed),
        lambda *given, times: difference_bets(*given, lowest=0, highest=1, margin=ERROR_MARGIN, times=times),
    ),
    Guard(
        "cost",
        lambda run: run.size,
        lambda *given, times: relative_bets(*given, factor=COST_FACTOR, times=times),
    ),
    Guard(
        "latency",
        lambda run: run.size,
        lambda *given, times: tail_bets(*given, factor=LATENCY_FACTOR, times=times),
    ),
)


def trial(
    random: Random,
    kind: Behavior,
    *,
    users: int = USERS,
    excess: float = 0.0,
    factor: float = 1.0,
    breaks_at: float = math.inf,
) -> Trial:
    """Draw a rollout.

    Args:
        random: Where chance is from.
        kind: What users do.
        users: How many there are.
        excess: By how much the runs of the new arm fail more often.
        factor: How many times as large the costs and latencies of the new arm are.
        breaks_at: From when on each run of the new arm fails, in parts of the whole time.
    """
    found = Trial([], [], [], [])
    for _ in range(users):
        _visit(random, kind, found, excess, factor, breaks_at)
    return found


def _visit(
    random: Random, kind: Behavior, found: Trial, excess: float, factor: float, breaks_at: float
) -> None:
    number = min(_MOST_RUNS, int(random.zipf(1.7))) if kind.zipf else 6
    times = random.random(number) if kind.known else (random.random() ** 2 + random.random(number)) / 2.0
    pending = sorted(times, reverse=True)
    hashed, difficulty = random.random(), 9.0 if kind.differ and random.random() < _DIFFICULT else 1.0
    low, last, is_drawn = 0.0, -1.0, False
    while pending:
        at = pending.pop()
        share = 0.5 if not kind.known or at >= 1 / 3 else 0.1
        is_new = hashed < share
        if share != last:
            last, is_drawn = share, low < share
            if is_drawn:
                found.arms.append(is_new)
                found.chances.append((share - low) / (1.0 - low))
                found.steps.append(share)
                found.runs.append([])
            low = 1.0 if is_new else share  # a new arm is never drawn again
        rate = (0.02 + 0.2 * at if kind.drifts else 0.1) * difficulty + excess * is_new
        failed = bool(random.random() < rate) or (is_new and at >= breaks_at)
        took = 20.0 * random.lognormal() * (kind.slow if is_new and not failed else 1.0)
        size = random.lognormal() * (factor if is_new else 1.0) * (1.0 + at * kind.drifts)
        if is_drawn:
            began = _SECONDS * at
            found.runs[-1].append(Run(len(found.runs) - 1, began, began + took, failed, size))
        if failed and kind.retries and at < 1.0:
            pending.append(at + 0.02 * random.random())
        if failed and random.random() < kind.leaves:
            return


def level(found: Trial, guard: Guard) -> float:
    """Return the logarithm of the evidence of a guard."""
    order = np.argsort([one[0].began for one in found.runs])
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    first = [found.runs[number][0] for number in order]
    later = sorted((run for runs in found.runs for run in runs[1:]), key=lambda run: run.began)
    values = np.array([guard.value(run) for run in first])
    times = np.array([run.began for run in first]), np.array([run.ended for run in first])
    bets = guard.bets(values, np.array(found.arms)[order], np.array(found.chances)[order], times=times)
    of_later = Later(
        place[np.array([run.draw for run in later], dtype=np.intp)],
        np.array([guard.value(run) for run in later], dtype=np.float64),
        np.array(found.steps)[order],
    )
    everyone = np.ones(len(order), dtype=np.bool_)
    return strongest(bets, values, everyone, of_later, everyone)


def alarms(number: int, *, at_edge: bool, repeats: int) -> list[float]:
    """Return how often each guard raises a false alarm at any time, for one behavior.

    Args:
        number: Number of the behavior.
        at_edge: Whether the new arm is as bad as is allowed, or else equal.
        repeats: How many rollouts to draw.
    """
    random = np.random.default_rng([number, at_edge])
    excess, cost, latency = (ERROR_MARGIN, COST_FACTOR, LATENCY_FACTOR) if at_edge else (0.0, 1.0, 1.0)
    found = np.zeros(len(GUARDS))
    for _ in range(repeats):
        one, other = (trial(random, BEHAVIORS[number], excess=excess, factor=by) for by in (cost, latency))
        found += [
            level(shown, guard) >= -math.log(ALPHA)
            for shown, guard in zip((one, one, other), GUARDS, strict=True)
        ]
    return [float(part) for part in found / repeats]


def failures_until_alarm(number: int, repeats: int, users: int = USERS) -> Sequence[float]:
    """Return how many runs of the new arm fail until the guard of errors stops it; infinity if it never does.

    All of its runs fail from the middle on.
    """
    random = np.random.default_rng([number, 2])
    taken = []
    for _ in range(repeats):
        found = trial(random, BEHAVIORS[number], users=users, breaks_at=0.5)
        seen = [found.until(_SECONDS * time) for time in np.linspace(0.5, 1.0, _LOOKS)]
        stopped = next((one for one in seen if level(one, GUARDS[0]) >= -math.log(ALPHA)), None)
        taken.append(math.inf if stopped is None else _failures(stopped))
    return taken


def _failures(found: Trial) -> int:
    runs = (run for is_new, runs in zip(found.arms, found.runs, strict=True) if is_new for run in runs)
    return sum(run.failed and run.began >= 0.5 * _SECONDS for run in runs)
