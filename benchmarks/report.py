"""The output of a benchmark with goals, and the goals that it missed."""

from __future__ import annotations

import attrs
from rich.console import Console

from benchmarks.measure import Measure, Rows, compare


@attrs.define
class Report:
    """Measures and prints rows, and records the missed goals."""

    console: Console
    repeats: int
    missed: list[str] = attrs.field(factory=list)
    _rows: Rows | None = None

    def begin(self, title: str, one: str, other: str) -> None:
        """Start a table of two sides."""
        self.say("")
        headings = (title, one, other, "ratio", "A/A", "goal")
        self._rows = Rows(self.console, *headings, widths=(36, 15, 15, 8, 7, 7))

    def say(self, text: str) -> None:
        """Print a line."""
        self.console.print(text, highlight=False, markup=False)

    async def row(
        self,
        name: str,
        one: Measure,
        other: Measure,
        count: int,
        *,
        control: Measure | None = None,
        goal: float | None = None,
    ) -> tuple[float, float]:
        """Measure two sides, and the first against itself or against ``control``; print a row.

        Returns:
            The median seconds of ``one``, and the ratio.
        """
        seconds, ratio = await compare(one, other, self.repeats, count)
        _, noise = await compare(one, control or one, self.repeats, count)
        if self._rows is None:
            raise RuntimeError("a row needs a table: call `begin` first")
        figures = (microseconds(seconds), microseconds(seconds * ratio), f"{ratio:.2f}", f"{noise:.2f}")
        self._rows.row(name, *figures, "-" if goal is None else f"{goal:.2f}")
        self.judge(name, ratio, goal, f"{ratio:.2f} times")
        return seconds, ratio

    def judge(self, name: str, figure: float, goal: float | None, shown: str) -> None:
        """Record a goal that was missed."""
        if goal is not None and figure > goal:
            self.missed.append(f"{name}: {shown}")


def microseconds(seconds: float) -> str:
    """Return a duration in the table's form for short times."""
    return f"{seconds * 1e6:,.2f} us"


def milliseconds(seconds: float) -> str:
    """Return a duration in the table's form for longer times."""
    return f"{seconds * 1e3:,.2f} ms"
