"""Values of a file as cases, with errors that name lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from kantan_agents.errors import DatasetFileError, InvalidCaseError
from kantan_agents.lab.evaluation.dataset.case import Case

REFERENCES = ("ideal", "target")
"""Names of ``expected`` in datasets of OpenAI's evals and Inspect."""


class LocatedCases:
    """The cases of a file; ``unit`` names a line in errors."""

    def __init__(self, path: Path, unit: str = "line") -> None:
        self._path = path
        self._unit = unit
        self._lines: dict[str, int] = {}
        self._counts: Counter[str] = Counter()
        self.cases: list[Case] = []

    def add(self, line: int, values: Mapping[str, Any], *, may_repeat: bool = False) -> None:
        """Add a case; with ``may_repeat``, a repeated id gets a number."""
        try:
            case = Case(**values)
        except InvalidCaseError as error:
            raise self.error(line, error.reason) from error
        self._counts[case.id] += 1
        if may_repeat and self._counts[case.id] > 1:
            case = attrs.evolve(case, id=f"{case.id}-{self._counts[case.id]}")
        first = self._lines.setdefault(case.id, line)
        if first != line:
            raise self.error(line, f"the id {case.id!r} is also in {self._unit} {first}; {_advice(values)}")
        self.cases.append(case)

    def error(self, line: int | None, reason: str) -> DatasetFileError:
        """Return the error about a line; None for the whole file."""
        located = reason if line is None else f"{self._unit} {line}: {reason}"
        return DatasetFileError(path=str(self._path), reason=located)


def without_input(columns: Iterable[str]) -> str:
    """Return the reason for a file whose cases have no input."""
    first = next(iter(columns), "question")
    return f'it has no input; import_dataset(path, columns={{"{first}": "input"}}) reads such a file'


def _advice(values: Mapping[str, Any]) -> str:
    if values.get("id"):
        return "give each case its own"
    return "both have the same input, context and expected output: remove one, or give each an id"
