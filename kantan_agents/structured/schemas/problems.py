"""What is wrong with a value, in words and with places that a model can act on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
from pydantic import ValidationError


@attrs.frozen
class Problem:
    """One mistake in a value; ``str`` of it is ``"items[0].price: Input should be a valid number"``.

    Attributes:
        path: Where it is; empty for the whole.
        message: What is wrong.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@attrs.frozen
class Examined:
    """A JSON value held against a schema.

    Attributes:
        value: The value to go on with: restored, and wrapped where the schema wraps. As it was given if it
            does not fit.
        problems: What is wrong with it; empty if it fits.
    """

    value: Any
    problems: tuple[Problem, ...] = ()


def problems_of(error: ValidationError, value: Any) -> tuple[Problem, ...]:
    """Return what pydantic has found wrong with a JSON value, each mistake once."""
    found = [
        Problem(_path(details["loc"], value, is_missing=details["type"] == "missing"), details["msg"])
        for details in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return tuple(dict.fromkeys(found))


def path_text(steps: Sequence[str | int]) -> str:
    """Return a path as people write it, such as ``items[0].price``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")


def _path(loc: Sequence[str | int], value: Any, *, is_missing: bool) -> str:
    """Return the steps that lead through the value: pydantic names the branches of unions among them."""
    steps: list[str | int] = []
    for step in loc:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            continue
        steps.append(step)
    return path_text([*steps, loc[-1]] if is_missing and loc else steps)
