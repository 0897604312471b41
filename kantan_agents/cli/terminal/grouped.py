"""``grouped``: options that several commands share are declared once, as the fields of an attrs class."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, get_type_hints

import attrs

R = TypeVar("R")


def grouped(command: Callable[..., R]) -> Callable[..., R]:
    """Replace each parameter whose type is an attrs class by options: one for each field of the class.

    The annotation and the default of a field are those of its option. The command itself receives an
    instance, so that it passes on one value.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if attrs.has(hint)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in groups:
            parameters += _options(groups[parameter.name])
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))

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
    hints = get_type_hints(group, include_extras=True)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [
        inspect.Parameter(field.name, kind, default=field.default, annotation=hints[field.name])
        for field in attrs.fields(group)
    ]
