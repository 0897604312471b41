"""``RunCounts``: how many runs of an evaluation are made, counted without reading them."""

from __future__ import annotations

import attrs

from kantan_agents.lab.evaluation.experiment.evaluation import Evaluation
from kantan_agents.lab.evaluation.experiment.tables import CASES, RESULTS
from kantan_agents.traces.store.connection import reading


@attrs.frozen
class RunCounts:
    """How many runs of an evaluation are made.

    Attributes:
        cases: Number of cases that it needs.
        finished: Number of runs that have finished.
        failed: Number of runs that an error has ended.
    """

    cases: int
    finished: int
    failed: int


def count_runs(evaluation: Evaluation) -> RunCounts:
    """Return how many runs are made, of the cases and the variants as they are now.

    Raises:
        TraceDatabaseError: E60, the file cannot be read.
    """
    row = evaluation.row
    wanted = {tuple(case) for case in row.body["cases"]}
    variants = {one["hash"] for one in row.body["variants"].values()}
    counts = {"finished": 0, "failed": 0}
    with reading(evaluation.path, by_trace=False, with_views=False) as connection:
        query = f"""SELECT c.case_id, c.case_hash, r.variant_hash, r.repeat, r.status
        FROM {RESULTS} r JOIN {CASES} c ON c.id = r.case_row WHERE r.evaluation = ?"""  # noqa: S608
        for case_id, case_hash, variant, repeat, status in connection.execute(query, (row.id,)):
            if (case_id, case_hash) in wanted and variant in variants and repeat < evaluation.repeats:
                counts[status] += 1
    return RunCounts(len(wanted), **counts)
