"""Finds missed goals, and workloads in which a peer is ahead."""

from __future__ import annotations

from benchmarks.peers.catalog import BY_ID, Workload
from benchmarks.peers.compared import FRAMEWORKS, OURS, PEERS
from benchmarks.peers.results import Cell, Results, Row

_TITLES = {framework.name: framework.title for framework in FRAMEWORKS}
_MICRO = 1e6


def is_missed(workload: Workload, cell: Cell) -> bool:
    """Return whether ``cell``, of kantan_agents, misses the goal of ``workload``."""
    over_ratio = workload.goal is not None and cell.ratio is not None and cell.ratio.median > workload.goal
    over_limit = (
        workload.limit is not None and cell.value is not None and cell.value.median * _MICRO > workload.limit
    )
    return over_ratio or over_limit


def ahead(row: Row) -> tuple[str, ...]:
    """Return the names of the peers that are ahead of kantan_agents in ``row``."""
    ours = row.cells[OURS].ratio
    if ours is None:
        return ()
    ratios = {name: row.cells[name].ratio for name in PEERS if name in row.cells}
    return tuple(name for name, ratio in ratios.items() if ratio is not None and ratio.median < ours.median)


def missed(results: Results) -> tuple[str, ...]:
    """Return a line for each missed goal."""
    lines = []
    for row in results.rows:
        workload, cell = BY_ID[row.workload], row.cells[OURS]
        if is_missed(workload, cell) and cell.value is not None and cell.ratio is not None:
            shown = (
                f"{cell.ratio.median:.3f} times, the goal is {workload.goal:.2f}"
                if workload.goal is not None
                else f"{cell.value.median * _MICRO:.1f} us, the goal is {workload.limit:g} us"
            )
            lines.append(f"{row.workload}: {shown}")
        lines += [f"{row.workload}: {_TITLES[name]} is ahead" for name in ahead(row)]
    return tuple(lines)
