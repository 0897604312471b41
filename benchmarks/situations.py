"""Situations with a known truth, in which the statistics of evaluations are tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Random = np.random.Generator

UNLABELLED = 1_000
"""How many cases only the judge has scored."""

_CASES_OF_A_CONVERSATION = 5
_HIGH, _WRONG = 0.9, 0.2


class Differences(NamedTuple):
    """Differences of paired scores, and the conversation of each if there are any."""

    values: Floats
    clusters: list[int] | None = None


class Paired(NamedTuple):
    """A situation of paired scores.

    Attributes:
        name: What is special about it.
        draw: Draws so many differences.
        truth: Their true mean.
        is_promised: Whether the statistics promise something for it.
    """

    name: str
    draw: Callable[[Random, int], Differences]
    truth: float
    is_promised: bool = True


class Judged(NamedTuple):
    """A situation of people's labels and judge's scores.

    Attributes:
        name: What is special about it.
        draw: Draws labels and scores of so many cases.
        truth: The true mean of the labels.
        is_promised: Whether the statistics promise something for it.
        is_unequal: Whether cases are drawn for labelling with unequal probabilities.
    """

    name: str
    draw: Callable[[Random, int], tuple[Floats, Floats]]
    truth: float
    is_promised: bool = True
    is_unequal: bool = False


def _few_values(*probabilities: float) -> Callable[[Random, int], Differences]:
    values = np.linspace(-1.0, 1.0, len(probabilities))
    return lambda random, count: Differences(random.choice(values, size=count, p=probabilities))


def _conversations(random: Random, count: int) -> Differences:
    """Draw conversations of 1 to 9 cases whose differences have half of their variance in common."""
    lengths = random.integers(1, 2 * _CASES_OF_A_CONVERSATION, size=count)
    clusters = np.repeat(np.arange(count), lengths)
    shared = random.normal(size=count)[clusters]
    return Differences(shared + random.normal(size=len(clusters)), clusters.tolist())


def _repeats(before: float, after: float) -> Callable[[Random, int], Differences]:
    """Draw means of three repeats of yes or no."""
    return lambda random, count: Differences(
        (random.binomial(3, after, count) - random.binomial(3, before, count)) / 3.0
    )


def _yes_no_conversations(random: Random, count: int) -> Differences:
    """Draw conversations of 1 to 9 cases of yes or no, of which a fifth is passed as a whole only with b."""
    lengths = random.integers(1, 2 * _CASES_OF_A_CONVERSATION, size=count)
    clusters = np.repeat(np.arange(count), lengths)
    before = random.random(len(clusters)) < random.beta(4.0, 1.0, size=count)[clusters]
    after = before | (random.random(count) < _WRONG)[clusters]
    return Differences(after.astype(np.float64) - before, clusters.tolist())


def _rarely(probability: float, *, is_noisy: bool = False) -> Callable[[Random, int], Differences]:
    """Draw differences of -1, rarely, and of 0 or small steps otherwise."""

    def draw(random: Random, count: int) -> Differences:
        steps = random.choice((-0.5, 0.0, 0.5), size=count, p=(0.15, 0.7, 0.15))
        return Differences(np.where(random.random(count) < probability, -1.0, steps * is_noisy))

    return draw


PAIRED = (
    Paired("normal", lambda random, count: Differences(random.normal(size=count)), 0.0),
    Paired("heavy tails (t3)", lambda random, count: Differences(random.standard_t(3, count)), 0.0),
    Paired("few values", _few_values(0.1, 0.15, 0.5, 0.15, 0.1), 0.0),
    Paired("-1, 0 or 1", _few_values(0.15, 0.7, 0.15), 0.0),
    Paired("-1, 0 or 1, one side better", _few_values(0.05, 0.75, 0.2), 0.15),
    Paired("conversations", _conversations, 0.0),
    Paired(
        "skewed (exponential)", lambda random, count: Differences(random.exponential(size=count) - 1), 0.0
    ),
    Paired(
        "very skewed (lognormal)",
        lambda random, count: Differences(random.lognormal(size=count) - np.exp(0.5)),
        0.0,
    ),
    Paired("3 repeats, 85 % -> 95 %", _repeats(0.85, 0.95), 0.1),
    Paired("3 repeats, 95 % -> 99 %", _repeats(0.95, 0.99), 0.04),
    Paired("conversations of yes or no", _yes_no_conversations, 0.04),
    Paired("rarely -1 (5 %), else 0", _rarely(0.05), -0.05),
    Paired("rarely -1 (10 %), else steps", _rarely(0.1, is_noisy=True), -0.1),
)
"""For conversations, the size is their number."""

YES_NO = {
    "2 % -> 10 %": (0.02, 0.1, 0.0),
    "0 % -> 95 %": (0.0, 0.95, 0.0),
    "50 % -> 50 %": (0.5, 0.5, 0.0),
    "50 % -> 70 %, alike": (0.5, 0.7, 0.6),
    "90 % -> 95 %, alike": (0.9, 0.95, 0.5),
    "99 % -> 99 %": (0.99, 0.99, 0.0),
    "100 % -> 98 %": (1.0, 0.98, 0.0),
}
"""Pass rates of a and b, and the correlation of their answers."""

SYMMETRIC = PAIRED[:4] + PAIRED[5:6]
"""Situations in which a and b do not differ at all, so that a test raises only false alarms."""


def _normal(random: Random, count: int) -> tuple[Floats, Floats]:
    scores = random.normal(size=count)
    return 0.8 * scores + 0.6 * random.normal(size=count), scores


def _useless(random: Random, count: int) -> tuple[Floats, Floats]:
    return random.normal(size=count), random.normal(size=count)


def _heavy(random: Random, count: int) -> tuple[Floats, Floats]:
    scores = random.standard_t(3, size=count)
    return 0.8 * scores + 0.6 * random.standard_t(3, size=count), scores


def _skewed(random: Random, count: int) -> tuple[Floats, Floats]:
    scores = random.exponential(size=count)
    return scores + 0.7 * random.exponential(size=count), scores


def _curved(random: Random, count: int) -> tuple[Floats, Floats]:
    scores = random.exponential(size=count)
    return scores**2 / 2 + scores * random.normal(scale=0.5, size=count), scores


def _yes_no(rate: float, errors: float) -> Callable[[Random, int], tuple[Floats, Floats]]:
    def draw(random: Random, count: int) -> tuple[Floats, Floats]:
        labels = (random.random(count) < rate).astype(np.float64)
        return labels, np.where(random.random(count) < errors, 1.0 - labels, labels)

    return draw


def _yes_no_scored(random: Random, count: int) -> tuple[Floats, Floats]:
    labels = (random.random(count) < _HIGH).astype(np.float64)
    return labels, np.clip(0.35 + 0.4 * labels + random.normal(scale=0.2, size=count), 0.0, 1.0)


def _yes_no_lenient(random: Random, count: int) -> tuple[Floats, Floats]:
    """Draw labels and a judge that passes all good cases, and a third of the bad ones."""
    labels = (random.random(count) < _HIGH).astype(np.float64)
    return labels, np.where(random.random(count) < 1 / 3, 1.0, labels)


def _grades(random: Random, count: int) -> tuple[Floats, Floats]:
    labels = random.choice(np.arange(1.0, 6.0), size=count, p=(0.05, 0.15, 0.3, 0.35, 0.15))
    return labels, np.clip(np.round(labels + 0.4 + random.normal(scale=0.8, size=count)), 1.0, 5.0)


def _difference(random: Random, count: int) -> tuple[Floats, Floats]:
    values = np.array([-1.0, 0.0, 1.0])
    labels = random.choice(values, size=count, p=(0.1, 0.7, 0.2))
    return labels, np.where(random.random(count) < _WRONG, random.choice(values, size=count), labels)


JUDGED = (
    Judged("normal", _normal, 0.0),
    Judged("judge without use", _useless, 0.0),
    Judged("heavy tails (t3)", _heavy, 0.0),
    Judged("skewed (exponential)", _skewed, 1.7),
    Judged("70 % yes, judge errs in 15 %", _yes_no(0.7, 0.15), 0.7),
    Judged("90 % yes, judge errs in 10 %", _yes_no(0.9, 0.1), 0.9),
    Judged("80 % yes, judge errs in 5 %", _yes_no(0.8, 0.05), 0.8),
    Judged("90 % yes, lenient judge", _yes_no_lenient, 0.9),
    Judged("90 % yes, judge gives a score", _yes_no_scored, 0.9),
    Judged("grades 1 to 5", _grades, 3.4),
    Judged("difference of two yes or no", _difference, 0.1),
    Judged("unequal probabilities", _normal, 0.0, is_unequal=True),
    Judged("unequal probabilities, grades", _grades, 3.4, is_unequal=True),
    Judged("curved and very skewed", _curved, 1.0, is_promised=False),
)


def labelled(
    situation: Judged, random: Random, count: int, unlabelled: int = UNLABELLED
) -> tuple[Floats, Floats, Floats | None]:
    """Return labels with NaN where there is none, scores, and probabilities if they are unequal.

    With unequal probabilities, cases that the judge scored low are three times as likely to be labelled, and
    ``count`` is the expected number of labels.
    """
    labels, scores = situation.draw(random, count + unlabelled)
    if not situation.is_unequal:
        labels[count:] = np.nan
        return labels, scores, None
    wanted = np.where(scores < np.median(scores), 3.0, 1.0)
    probabilities = np.minimum(1.0, wanted * count / wanted.sum())
    labels[random.random(len(labels)) >= probabilities] = np.nan
    return labels, scores, probabilities
