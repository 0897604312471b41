"""The order in which the cases of two variants were run, for verdicts that hold at any look."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kantan_agents.lab.evaluation.comparing.paired_values import CaseKey
from kantan_agents.lab.evaluation.experiment.results import CaseResult

Runs = Mapping[CaseKey, list[CaseResult]]
"""The runs of each case."""

# A UUIDv7, which begins with the time at which the run began.
_TIMED: Final = re.compile(r"trace_[0-9a-f]{12}7[0-9a-f]{19}")


def run_order(a: Runs, b: Runs, *, failed_count: bool) -> tuple[dict[str, int], bool]:
    """Return the place of each case that both variants were run on, by its id, and whether it is known.

    A case is at the place of the last of its runs to begin: before that, nothing is known of its difference.
    Runs begin in the order of the dataset, however long each takes, so that the order says nothing about
    their scores. If a run is not recorded, the order of ``a`` is returned, which is that of the dataset.

    Args:
        a: The runs of each case of the one variant.
        b: The same for the other.
        failed_count: Whether a run that has failed has a value. Then its case keeps its place if the run is
            made again; otherwise the case is new then.
    """
    last: dict[str, str] = {}
    for key in a:
        if key in b:
            both = (*a[key], *b[key])
            traces = [(failed_count and one.first_trace_id) or one.trace_id or "" for one in both]
            if not all(map(_TIMED.fullmatch, traces)):
                return {key[0]: place for place, key in enumerate(a)}, False
            last[key[0]] = max(traces)
    return {case: place for place, case in enumerate(sorted(last, key=last.__getitem__))}, True
