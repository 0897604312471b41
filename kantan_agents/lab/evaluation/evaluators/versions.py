"""Versions of evaluators: hashes of everything that determines the scores."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.dataset.json_data import NotJSONDataError, json_copy
from kantan_agents.traces.capture.canonical import content_hash

_LENGTH: Final = 16


def version_of_options(kind: str, options: Mapping[str, Any]) -> str:
    """Return the version of a built-in evaluator."""
    return content_hash({"evaluator": kind, "options": options})[:_LENGTH]


def version_of_function(function: Any, name: str) -> str:
    """Return a hash of source, defaults, and outer variables of JSON data."""
    try:
        source = textwrap.dedent(_source_of(function))
    except (OSError, TypeError) as error:
        reason = f'the source of {name!r} is not available, so give a version, such as version="1"'
        raise InvalidOptionError(option="version", reason=reason) from error
    return content_hash({"source": source, "values": dict(_values(inspect.unwrap(function)))})[:_LENGTH]


def _source_of(function: Any) -> str:
    if inspect.getfile(inspect.unwrap(function)) == "<string>":
        # Python 3.13 stores the program of ``python -c`` under this name, which all ``exec`` share.
        raise OSError("it was not read from a file")
    return inspect.getsource(function)


def _values(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the JSON values of a function that its source does not show."""
    called = getattr(function, "__func__", function)  # a method has them on its function
    values: dict[str, Any] = {}
    for name, parameter in inspect.signature(called).parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            values[f"default {name}"] = parameter.default
    names = getattr(getattr(called, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, getattr(called, "__closure__", None) or (), strict=False):
        with suppress(ValueError):  # a variable without a value yet
            values[f"variable {name}"] = cell.cell_contents
    for name, value in values.items():
        with suppress(NotJSONDataError):
            yield name, json_copy(value, name)
