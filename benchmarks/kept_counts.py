"""The stored call counts, and how much and where new counts have grown."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs

from benchmarks.counting_calls import Counts

LIMIT = Fraction(5, 100)
"""The largest growth that passes."""

OWN, ALL, PLAIN, RATIO = "own calls", "all calls", "plain SDK", "all / plain SDK"

_PLACES = 3
_NOT_KEPT = attrs.filters.exclude("functions")


@attrs.frozen(order=True)
class Environment:
    """The versions that counts depend on: Python's and openai-agents' minor versions."""

    python: tuple[int, int]
    sdk: tuple[int, int]

    @classmethod
    def here(cls) -> Environment:
        """Return the environment of this process."""
        return cls(sys.version_info[:2], _minor(version("openai-agents")))

    def __str__(self) -> str:
        return f"Python {_dotted(self.python)}, openai-agents {_dotted(self.sdk)}"

    def distance(self, other: Environment) -> tuple[int, ...]:
        """Return the distance to another environment, by Python first."""
        here, there = (*self.python, *self.sdk), (*other.python, *other.sdk)
        return tuple(abs(one - two) for one, two in zip(here, there, strict=True))


Kept = dict[Environment, dict[str, Counts]]


def read(path: Path) -> Kept:
    """Return the stored counts, or none if the file does not exist."""
    if not path.exists():
        return {}
    return {
        Environment(_minor(record["python"]), _minor(record["openai-agents"])): {
            name: Counts(**counts) for name, counts in record["workloads"].items()
        }
        for record in json.loads(path.read_text(encoding="utf-8"))
    }


def write(path: Path, kept: Kept) -> None:
    """Write the counts to the file."""
    records = [
        {
            "python": _dotted(environment.python),
            "openai-agents": _dotted(environment.sdk),
            "workloads": {name: _record(counts) for name, counts in workloads.items()},
        }
        for environment, workloads in sorted(kept.items())
    ]
    path.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")


@attrs.frozen
class Change:
    """One figure of one workload: its stored and its new value."""

    workload: str
    figure: str
    kept: Fraction
    now: Fraction

    @property
    def growth(self) -> Fraction:
        """Return the growth as a fraction of the stored value."""
        return self.now / self.kept - 1

    @property
    def is_checked(self) -> bool:
        """Return whether growth fails the check: only for figures that no dependency changes."""
        return self.figure in (OWN, RATIO)


def changes(
    kept: Mapping[str, Counts], now: Mapping[str, Counts], figures: Iterable[str] = (OWN, ALL, PLAIN, RATIO)
) -> Iterator[Change]:
    """Yield the figures of the workloads that both have."""
    wanted = tuple(figures)
    for name, counts in now.items():
        if name in kept:
            before, after = _figures(kept[name]), _figures(counts)
            for figure in wanted:
                yield Change(name, figure, before[figure], after[figure])


def described(change: Change, kept: Counts, now: Counts) -> str:
    """Return in one line what has grown, and where."""
    text = f"{change.workload}: {change.figure} grew by {percent(change.growth)}"
    where = _grown(kept.modules, now.modules)
    if change.figure != OWN:
        plain = Fraction(now.plain, kept.plain) - 1
        text += f" (calls of the plain SDK: {percent(plain, signed=True)})"
        where += _grown(kept.packages, now.packages)
    places = sorted(where, key=lambda place: place[1] - place[2])[:_PLACES]
    most = "; ".join(_place(*place, now) for place in places)
    return f"{text}, most in {most}" if most else text


def percent(part: Fraction, *, signed: bool = False) -> str:
    """Return a fraction as a percentage."""
    return f"{float(part) * 100:{'+' if signed else ''}.1f} %"


def _grown(kept: Mapping[str, int], now: Mapping[str, int]) -> list[tuple[str, int, int]]:
    return [(name, kept.get(name, 0), calls) for name, calls in now.items() if calls > kept.get(name, 0)]


def _place(name: str, kept: int, now: int, counts: Counts) -> str:
    functions = sorted(counts.functions.get(name, {}).items(), key=lambda called: -called[1])[:_PLACES]
    most = ", ".join(f"{function} {calls}" for function, calls in functions)
    return f"{name} {kept} -> {now}" + (f" (now {most})" if most else "")


def _figures(counts: Counts) -> dict[str, Fraction]:
    return {
        OWN: Fraction(counts.own),
        ALL: Fraction(counts.all),
        PLAIN: Fraction(counts.plain),
        RATIO: Fraction(counts.all, counts.plain),
    }


def _record(counts: Counts) -> dict[str, Any]:
    record = attrs.asdict(counts, filter=_NOT_KEPT)
    for breakdown in ("modules", "packages"):
        record[breakdown] = dict(sorted(record[breakdown].items()))
    return record


def _minor(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def _dotted(numbers: tuple[int, int]) -> str:
    return ".".join(map(str, numbers))
