"""Maps columns of a table to parts of a case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.dataset.located_cases import REFERENCES, LocatedCases
from kantan_agents.support.arguments import shown
from kantan_agents.support.nearest import nearest

_PLAIN: Final = ("input", "expected", "id", "conversation", "earlier")
_GROUPS: Final = ("context", "metadata")
_OWN: Final = {**{name: name for name in (*_PLAIN, *_GROUPS)}, **dict.fromkeys(REFERENCES, "expected")}


def checked_columns(columns: Any) -> Mapping[str, str | None]:
    """Return a valid map of columns; E75 otherwise."""
    given = {} if columns is None else columns
    if not isinstance(given, Mapping):
        reason = f'must be a dict, such as {{"question": "input"}}, not {shown(columns)}'
        raise InvalidOptionError(option="columns", reason=reason)
    for column, part in given.items():
        if part is not None and part not in _PLAIN and not _is_named(part):
            reason = (
                f"{column!r} must be {', '.join(_PLAIN)}, context.NAME or metadata.NAME, or None to leave it "
                f"out, not {shown(part)}"
            )
            raise InvalidOptionError(option="columns", reason=reason)
    return {str(column): part for column, part in given.items()}


def _is_named(part: Any) -> bool:
    group, _, name = part.partition(".") if isinstance(part, str) else ("", "", "")
    return group in _GROUPS and bool(name)


def inputs_of(columns: Mapping[str, str | None]) -> set[str]:
    """Return the columns that may be the input."""
    return {column for column, part in columns.items() if part == "input"} or {"input"}


def check_header(found: LocatedCases, names: Iterable[str], columns: Mapping[str, str | None]) -> None:
    """Check that the columns of a map exist, and that one is the input."""
    there = list(dict.fromkeys(names))
    if not there:
        raise found.error(None, "it has no rows")
    for column in columns:
        if column not in there:
            near = nearest(column, there)
            hint = f"there are {', '.join(map(repr, there))}" if near is None else f"did you mean {near!r}?"
            raise found.error(None, f"it has no column {column!r}; {hint}")
    if not inputs_of(columns) & {*there}:
        listed = ", ".join(map(repr, there))
        reason = f'say which column is the input, such as columns={{"{there[0]}": "input"}}; it has {listed}'
        raise found.error(None, reason)


def values_of(
    found: LocatedCases, line: int, row: Mapping[str, Any], columns: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return the arguments of ``Case`` for a row; unmapped columns are metadata."""
    values: dict[str, Any] = {group: {} for group in _GROUPS}
    for column, value in row.items():
        part = columns[column] if column in columns else _OWN.get(column, column)
        if part is None or value is None:
            continue
        group, _, name = part.partition(".")
        if part in _GROUPS and isinstance(value, Mapping):
            values[part] |= value
        elif group in _GROUPS and name:
            values[group][name] = value
        elif part not in _PLAIN:
            values["metadata"][column] = value
        elif part in values:
            raise found.error(line, f"two columns are {part}; leave one out: columns={{{column!r}: None}}")
        else:
            values[part] = value
    for part in ("input", "id", "conversation"):
        if part in values:
            values[part] = as_text(values[part])
    return values


def split_input(
    found: LocatedCases, line: int, fields: Mapping[str, Any], columns: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return one field of a dict as input, and the other fields as context."""
    wanted = inputs_of(columns) & {*fields} or ({*fields} if len(fields) == 1 else set())
    if len(wanted) != 1:
        listed = ", ".join(map(repr, fields))
        example = next(iter(fields), "question")
        reason = f'say which of {listed} is the input, such as columns={{"{example}": "input"}}'
        raise found.error(line, reason)
    (name,) = wanted
    context = {key: value for key, value in fields.items() if key != name and value is not None}
    return {"input": as_text(fields[name]), "context": context}


def as_text(value: Any) -> Any:
    """Return numbers as strings; 7.0 as ``"7"``, because missing values turn a column into floats."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
