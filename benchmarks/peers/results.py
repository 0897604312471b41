"""The results of a comparison, as frozen values and as JSON."""

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
        value: The cost of a run: seconds, or bytes for waiting runs.
        ratio: The ratio to the plain SDK or, for traced runs, to the same run untraced.
        late: Lag of the event loop in seconds: median and 99th percentile.
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
        cells: The cells by name of the framework.
        control: The ratio of the plain SDK to itself, in two processes.
        control_late: Lag of the event loop in the second of these.
    """

    workload: str
    cells: Mapping[str, Cell]
    control: Spread | None = None
    control_late: tuple[float, float] | None = None


@attrs.frozen
class Results:
    """All results of a comparison.

    Attributes:
        measured_on: The day, ISO 8601; several days, joined with "and", if rows were measured again.
        machine: Description of the machine.
        repeats: Pairs of batches per row.
        generations: Number of groups of fresh processes over which the pairs are divided.
        versions: Names and versions of packages, by framework.
        left_out: Frameworks that did not take part, with the reason.
        rows: The rows in the order of the catalogue.
        is_quick: Whether it was a quick check, with smaller sizes than the rows say.
        failed: Workloads that could not be measured, with the reason.
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
        """Return these results with the rows of ``newer`` in place of the old or failed ones.

        Raises:
            ValueError: They were not measured in the same way, so they must not share a table.
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
        """Raise ValueError if one of ``workloads`` neither has a row nor has failed."""
        unknown = {*workloads} - {row.workload for row in self.rows} - self.failed.keys()
        if unknown:
            names = ", ".join(sorted(unknown))
            raise ValueError(f"what is published has no row {names}: a whole run is needed")

    def to_json(self) -> str:
        """Return the results as JSON text."""
        return json.dumps(attrs.asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Results:
        """Return the results from the output of ``to_json``."""
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
