"""Shares options between commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import attrs

R = TypeVar("R")


def grouped(command: Callable[..., R]) -> Callable[..., R]:
    """Replace each attrs parameter by one option per field."""
    # Not `get_type_hints`: before Python 3.11, it hides an option with the default None inside `Optional`.
    given_parameters = inspect.signature(command, eval_str=True).parameters.values()
    groups = {one.name: one.annotation for one in given_parameters if attrs.has(one.annotation)}
    parameters: list[inspect.Parameter] = []
    for parameter in given_parameters:
        parameters += (
            _options(groups[parameter.name])
            if parameter.name in groups
            else [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
        )

    @wraps(command)
    def run(**given: Any) -> R:
        values = {
            name: group(**{field.name: given.pop(field.name) for field in attrs.fields(group)})
            for name, group in groups.items()
        }
        return command(**given, **values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _options(group: type[Any]) -> list[inspect.Parameter]:
    hints = inspect.get_annotations(group, eval_str=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(field.name, kind, default=field.default, annotation=hints[field.name])
        for field in attrs.fields(group)
    ]
