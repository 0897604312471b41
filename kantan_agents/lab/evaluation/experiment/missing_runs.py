"""``MissingRun``: one run of a case that an evaluation needs, and what is still to be done about it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import attrs

from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.evaluation.experiment.rows import ResultKey, Stored
from kantan_agents.lab.evaluation.experiment.variants import Variant


@attrs.frozen
class MissingRun:
    """One run of a case.

    Attributes:
        case: The case.
        variant: The variant.
        repeat: Number of the repetition, from 0.
        row: The number of its result, if that is stored.
        evaluators: The evaluators that have not scored it.
        replaces: Whether there is a finished result, which cannot be scored without its contents.
    """

    case: Case
    variant: Variant
    repeat: int
    row: int | None
    evaluators: Sequence[Evaluator]
    replaces: bool = False


def find_missing_runs(
    cases: Sequence[Case],
    variants: Sequence[Variant],
    repeats: int,
    evaluators: Sequence[Evaluator],
    stored: Stored,
) -> Iterator[MissingRun]:
    """Yield the runs that are missing, and those that are not scored by all evaluators.

    The variants take turns, so that a slow hour of a provider meets all of them. Which is first is drawn for
    each case: what is started together ends one after the other, and that would be taken for a difference.
    """
    done: list[tuple[Evaluator, Collection[int]]] = [
        (one, stored.scored.get((one.name, one.version), ())) for one in evaluators
    ]
    for repeat in range(repeats):
        for case in cases:
            for variant in _in_turn(variants, case, repeat):
                row = stored.rows.get(key_of(case, variant, repeat))
                if row is None:
                    yield MissingRun(case, variant, repeat, None, evaluators)
                    continue
                left = [one for one, rows in done if row not in rows]
                if left and row in stored.withheld:
                    yield MissingRun(case, variant, repeat, None, evaluators, replaces=True)
                elif left:
                    yield MissingRun(case, variant, repeat, row, left)


def _in_turn(variants: Sequence[Variant], case: Case, repeat: int) -> Sequence[Variant]:
    # By the hash of the case, so that the same evaluation is made in the same order again.
    first = (int(case.hash, 16) + repeat) % len(variants)
    return [*variants[first:], *variants[:first]]


def key_of(case: Case, variant: Variant, repeat: int) -> ResultKey:
    """Return what identifies the run of a case."""
    return case.id, case.hash, variant.hash, repeat
