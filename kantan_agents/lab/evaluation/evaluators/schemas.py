"""An evaluator that checks the output against a JSON Schema or a type."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import jsonschema_rs
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.dataset.json_data import NotJSONDataError, json_copy, read_json
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.evaluation.evaluators.versions import version_of_options
from kantan_agents.lab.evaluation.finished_case import FinishedCase
from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.support.arguments import shown

_MOST_PROBLEMS: Final = 5
_Check = Callable[[Any], list[str]]


def valid(schema: Mapping[str, Any] | type[Any] | Any, *, name: str = "valid") -> Evaluator:
    """Return an evaluator: does the output fit a JSON Schema or a type?

    A string output is parsed as JSON, and does not fit if it is not JSON.

    Args:
        schema: A JSON Schema as a dict, or any type that pydantic validates: a model, a dataclass, a
            TypedDict, ``list[int]``. References of a schema to files or URLs are rejected, not read.
        name: Name of the metric.

    Raises:
        InvalidOptionError: E75, it is neither.
    """
    check, described = _of_schema(schema) if isinstance(schema, Mapping) else _of_type(schema)

    async def score(finished: FinishedCase) -> Score:
        output = finished.output
        if isinstance(output, str):
            try:
                output = read_json(output)
            except NotJSONDataError as error:
                return Score(0.0, comment=f"the output: {error}")
        problems = check(output)
        return Score(0.0, comment="; ".join(problems)) if problems else Score(1.0)

    return Evaluator(name, version_of_options("valid", {"schema": described}), score)


def _of_schema(schema: Mapping[str, Any]) -> tuple[_Check, Any]:
    try:
        given = json_copy(schema, "schema")
        validator = jsonschema_rs.validator_for(given, retriever=_refuse)
    except ValueError as error:  # not JSON data, or not a schema
        reason = f"is not a JSON Schema: {str(error).splitlines()[0]}"
        raise InvalidOptionError(option="schema", reason=reason) from error

    def check(output: Any) -> list[str]:
        return [
            f"{'.'.join(map(str, error.instance_path)) or 'the output'}: {error.message}"
            for error, _ in zip(validator.iter_errors(output), range(_MOST_PROBLEMS), strict=False)
        ]

    return check, given


def _of_type(kind: Any) -> tuple[_Check, Any]:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
    except PydanticUserError as error:
        reason = f"must be a JSON Schema or a type that pydantic validates, not {shown(kind)}"
        raise InvalidOptionError(option="schema", reason=reason) from error
    try:
        described = adapter.json_schema()
    except PydanticUserError:  # a type with a custom validator has none
        described = {"type": f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', kind)}"}

    def check(output: Any) -> list[str]:
        try:
            adapter.validate_json(json.dumps(output))
        except ValidationError as error:
            return [
                f"{'.'.join(map(str, one['loc'])) or 'the output'}: {one['msg']}"
                for one in error.errors(include_url=False, include_context=False)[:_MOST_PROBLEMS]
            ]
        return []

    return check, described


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"the reference to {uri} is not followed; put the schema into $defs")
