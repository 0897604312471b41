"""Items of a Langfuse dataset, from its API, its SDKs, or exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.lab.evaluation.dataset.importing.columns import as_text, split_input
from kantan_agents.lab.evaluation.dataset.json_data import NotJSONDataError, read_json
from kantan_agents.lab.evaluation.dataset.located_cases import LocatedCases

KEYS: Final = ("data", "items")
_ARCHIVED: Final = "ARCHIVED"


def langfuse_values(
    found: LocatedCases, line: int, row: Mapping[str, Any], columns: Mapping[str, str | None]
) -> dict[str, Any] | None:
    """Return the arguments of ``Case`` for an item; None for an archived one."""
    if "input" not in row:
        raise found.error(line, "it is not an item of a Langfuse dataset, which has an input")
    if row.get("status") == _ARCHIVED:
        return None
    metadata = _data(row.get("metadata"))
    values: dict[str, Any] = {
        "id": as_text(row.get("id") or ""),
        "expected": _data(_either(row, "expectedOutput", "expected_output")),
        "metadata": metadata if isinstance(metadata, Mapping) else {"langfuse": metadata} if metadata else {},
    }
    for one, other in (
        ("sourceTraceId", "source_trace_id"),
        ("sourceObservationId", "source_observation_id"),
    ):
        if source := _either(row, one, other):
            values["metadata"] = {**values["metadata"], other: source}
    given = _data(row["input"])
    if isinstance(given, Mapping):
        return {**values, **split_input(found, line, given, columns)}
    if given in (None, ""):
        raise found.error(line, "the input is empty")
    is_items = isinstance(given, list) and all(isinstance(one, Mapping) for one in given)
    return {**values, "input": given if is_items else as_text(row["input"])}


def _either(row: Mapping[str, Any], one: str, other: str) -> Any:
    return row.get(one, row.get(other))


def _data(value: Any) -> Any:
    """Parse objects and lists in a cell of a CSV file; other strings, such as 7, stay strings."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return read_json(value)
    except NotJSONDataError:
        return value
