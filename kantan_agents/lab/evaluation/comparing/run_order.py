"""The order in which the cases of two variants ran."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kantan_agents.lab.evaluation.comparing.paired_values import CaseKey
from kantan_agents.lab.evaluation.experiment.results import CaseResult

Runs = Mapping[CaseKey, list[CaseResult]]
# A UUIDv7, which starts with the time at which the run started.
_TIMED: Final = re.compile(r"trace_[0-9a-f]{12}7[0-9a-f]{19}")


def run_order(a: Runs, b: Runs, *, failed_count: bool) -> tuple[dict[str, int], bool]:
    """Return the position of each common case, by its id, and whether it is known.

    The start of its last run decides, so the order does not depend on scores. With ``failed_count``, a
    repeated failed run does not move its case; otherwise the case is new then.
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
