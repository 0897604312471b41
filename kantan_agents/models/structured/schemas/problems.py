"""Problems of a value that a model can act on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
from pydantic import ValidationError


@attrs.frozen
class OutputProblem:
    """One problem; as a str, ``"items[0].price: Input should be a valid number"``."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@attrs.frozen
class Examined:
    """The result of validating a JSON value.

    ``value`` is restored, and wrapped if the schema wraps; unchanged if it does not fit.
    """

    value: Any
    problems: tuple[OutputProblem, ...] = ()


def problems_of(error: ValidationError, value: Any) -> tuple[OutputProblem, ...]:
    """Return pydantic's problems without duplicates."""
    found = [
        OutputProblem(_path(details["loc"], value, is_missing=details["type"] == "missing"), details["msg"])
        for details in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return tuple(dict.fromkeys(found))


def path_text(steps: Sequence[str | int]) -> str:
    """Return a path in the notation ``items[0].price``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")


def _path(loc: Sequence[str | int], value: Any, *, is_missing: bool) -> str:
    """Return the path without pydantic's names of union branches."""
    steps: list[str | int] = []
    for step in loc:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            continue
        steps.append(step)
    return path_text([*steps, loc[-1]] if is_missing and loc else steps)
