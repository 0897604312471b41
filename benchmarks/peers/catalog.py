"""The workloads that are measured on every framework: the rows of the table."""

from __future__ import annotations

from typing import Literal

import attrs

Kind = Literal["time", "http", "at_once", "construct", "held", "traced", "import"]


@attrs.frozen
class Workload:
    """One row of the table.

    Attributes:
        id: Its name for ``--only``.
        title: Its title in the table.
        kind: How it is measured.
        run: The entry of the framework modules to use; the id if empty.
        goal: Maximum cost of kantan_agents as a ratio to the plain SDK or, for traced runs, to the same run
            untraced.
        limit: Maximum microseconds, if the goal is not a ratio.
        size: Number of concurrent or waiting runs, or of spans in the file.
        quick_size: The size with ``--quick``.
    """

    id: str
    title: str
    kind: Kind
    run: str = ""
    goal: float | None = None
    limit: float | None = None
    size: int = 0
    quick_size: int = 0

    @property
    def entry(self) -> str:
        """The entry of the framework modules."""
        return self.run or self.id


_CONSTRUCTION_LIMIT = 100.0

WORKLOADS = (
    Workload("one_turn", "one turn", "time", goal=0.99),
    Workload("one_turn_rendered", "one turn, instructions rendered", "time"),
    Workload("tool_turn", "tool call and answer", "time", goal=0.92),
    Workload("tools_100", "one turn, 100 tools", "time", goal=0.40),
    Workload("tools_1000", "one turn, 1,000 tools", "time", goal=0.15),
    Workload("structured", "structured output", "time", goal=0.65),
    Workload("handoffs_10", "one turn, 10 handoff targets", "time", goal=1.00),
    Workload("handoff_taken", "one of 10 handoffs taken", "time"),
    Workload("streaming", "answer in 1,000 deltas", "time", goal=1.02),
    Workload("at_once_50", "50 concurrent runs", "at_once", run="one_turn", size=50, quick_size=50),
    Workload("at_once_500", "500 concurrent runs", "at_once", run="one_turn", size=500, quick_size=100),
    Workload("http_one_turn", "one turn over HTTP", "http"),
    Workload("http_tool_turn", "tool call and answer over HTTP", "http"),
    Workload("http_tools_100", "one turn over HTTP, 100 tools", "http"),
    Workload("construct_0", "making an agent", "construct", limit=_CONSTRUCTION_LIMIT),
    Workload("construct_100", "making an agent with 100 tools", "construct"),
    Workload("once_100", "making an agent with 100 tools, and one turn of it", "time"),
    Workload("held_0", "memory of a waiting run", "held", goal=1.00, size=5_000, quick_size=100),
    Workload("held_100", "memory of a waiting run, 100 tools", "held", goal=0.40, size=500, quick_size=50),
    Workload("traced_empty", "recorded, empty file", "traced", run="traced", goal=1.10),
    Workload(
        "traced_million",
        "recorded, a million spans in the file",
        "traced",
        run="traced",
        goal=1.10,
        size=1_000_000,
        quick_size=20_000,
    ),
    Workload("import", "import", "import"),
)

BY_ID = {workload.id: workload for workload in WORKLOADS}
