"""What was measured, as frozen values and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from benchmarks.peers.catalog import BY_ID
from benchmarks.peers.rounds import Spread


@attrs.frozen
class Cell:
    """One framework in one row.

    Attributes:
        value: What a run costs: seconds, bytes where runs are held open.
        ratio: The same as a ratio: to the plain SDK or, where runs are traced, to the same run untraced.
        late: How late the event loop was, in seconds: median and 99th percentile.
        absent: Why there are no figures.
    """

    value: Spread | None = None
    ratio: Spread | None = None
    late: tuple[float, float] | None = None
    absent: str | None = None


@attrs.frozen
class Row:
    """One workload.

    Attributes:
        workload: Its id.
        cells: By the name of the framework.
        control: The ratio of the plain SDK to itself, in two processes.
        control_late: How late the event loop was with the second of these.
    """

    workload: str
    cells: Mapping[str, Cell]
    control: Spread | None = None
    control_late: tuple[float, float] | None = None


@attrs.frozen
class Results:
    """All of it.

    Attributes:
        measured_on: The day, ISO 8601; several, with "and" between, where rows were measured again.
        machine: What the figures are to be read with.
        repeats: Pairs of batches a row.
        generations: Groups of fresh processes that these are divided over.
        versions: Of each framework that took part: package names and their versions.
        left_out: Frameworks that did not take part, and why.
        rows: In the order of the catalogue.
        is_quick: Whether it was a quick check, with smaller sizes than the rows say.
        failed: Workloads that could not be measured, and why.
    """

    measured_on: str
    machine: str
    repeats: int
    generations: int
    versions: Mapping[str, Mapping[str, str]]
    left_out: Mapping[str, str]
    rows: tuple[Row, ...]
    is_quick: bool = False
    failed: Mapping[str, str] = attrs.field(factory=dict)

    def with_rows_of(self, newer: Results) -> Results:
        """Return these results with the rows of ``newer``, in place of the old ones or of what had failed.

        Raises:
            ValueError: They were not measured in the same way, so they do not belong into one table.
        """
        if not newer.rows:
            return self
        for field in ("machine", "versions", "repeats", "generations", "left_out", "is_quick"):
            here, there = getattr(self, field), getattr(newer, field)
            if here != there:
                raise ValueError(f"{field} differs: {here} in what is published, {there} now")
        again = {row.workload: row for row in newer.rows}
        self.check_has(again)
        all_rows = {row.workload: row for row in self.rows} | again
        rows = tuple(all_rows[name] for name in BY_ID if name in all_rows)
        failed = {name: reason for name, reason in self.failed.items() if name not in all_rows}
        days = sorted({*self.measured_on.split(" and "), newer.measured_on})
        return attrs.evolve(self, rows=rows, failed=failed, measured_on=" and ".join(days))

    def check_has(self, workloads: Iterable[str]) -> None:
        """Raise ValueError if one of ``workloads`` has neither a row here nor failed."""
        unknown = {*workloads} - {row.workload for row in self.rows} - self.failed.keys()
        if unknown:
            names = ", ".join(sorted(unknown))
            raise ValueError(f"what is published has no row {names}: a whole run is needed")

    def to_json(self) -> str:
        """Return it as JSON text."""
        return json.dumps(attrs.asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Results:
        """Return what ``to_json`` was called on."""
        data = json.loads(text)
        return cls(**{**data, "rows": tuple(_row(row) for row in data["rows"])})


def _row(data: dict[str, Any]) -> Row:
    cells = {name: _cell(cell) for name, cell in data["cells"].items()}
    return Row(data["workload"], cells, _spread(data["control"]), _pair(data.get("control_late")))


def _cell(data: dict[str, Any]) -> Cell:
    return Cell(
        value=_spread(data["value"]),
        ratio=_spread(data["ratio"]),
        late=_pair(data["late"]),
        absent=data["absent"],
    )


def _pair(data: list[float] | None) -> tuple[float, float] | None:
    return None if data is None else (data[0], data[1])


def _spread(data: dict[str, float] | None) -> Spread | None:
    return None if data is None else Spread(**data)
