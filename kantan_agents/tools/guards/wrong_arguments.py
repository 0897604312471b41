"""Describes mistakes in unreadable arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from agents import FunctionTool, ModelBehaviorError
from pydantic import ValidationError

from kantan_agents.support.nearest import nearest
from kantan_agents.tool_rules.keywords import compiled
from kantan_agents.tools.received_arguments import schema_behind

_LISTED: Final = 20
_LONGEST_VALUE: Final = 60
_LONGEST_NAME: Final = 100
_DESCRIBED: Final = "__kantan_described__"
_PREFIX: Final = "Invalid JSON input for tool"
_EXPECTED: Final[Mapping[str, str]] = {
    "int": "an integer",
    "float": "a number",
    "decimal": "a number",
    "string": "a text",
    "bool": "true or false",
    "list": "an array",
    "tuple": "an array",
    "set": "an array",
    "frozen": "an array",
    "dict": "an object",
    "model": "an object",
    "dataclass": "an object",
    "date": "a date",
    "datetime": "a date with a time",
    "time": "a time",
}
_TYPE_ERRORS: Final = ("_type", "_parsing", "_from_float")


def describe_wrong_arguments(error: Exception, tool: FunctionTool, text: str) -> bool:
    """Add the mistakes to the SDK's error, which names only the tool; return whether it has any."""
    if hasattr(error, _DESCRIBED):  # a middleware may have redacted the description
        return True
    if not isinstance(error, ModelBehaviorError) or not str(error).startswith(_PREFIX):
        return False
    problems = list(_problems(tool, text))
    if not problems:
        return False
    more = [f"and {len(problems) - _LISTED} more"] if len(problems) > _LISTED else []
    # In the exception's arguments, from which `Redact` removes personal data.
    error.args = (f"{_PREFIX} {tool.name}: {'; '.join([*problems[:_LISTED], *more])}",)
    setattr(error, _DESCRIBED, True)
    return True


def _problems(tool: FunctionTool, text: str) -> Iterator[str]:
    try:
        arguments = json.loads(text) if text else {}
    except json.JSONDecodeError as error:
        near = text[max(error.pos - 20, 0) : error.pos + 20]
        yield f"the arguments are not JSON: {error.msg} at character {error.pos}, near {_shown(near)}"
        return
    except (ValueError, RecursionError):
        yield "the arguments are not JSON"
        return
    if not isinstance(arguments, dict):
        yield f"the arguments must be a JSON object, not {_shown(arguments)}"
        return
    schema = schema_behind(tool)
    if schema is None:
        yield from _problems_by_schema(tool, arguments)
        return
    try:
        schema.params_pydantic_model(**arguments)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=True)
        yield from dict.fromkeys(_described(one) for one in found)
        yield from _unknown(arguments, tool.params_json_schema)
    except TypeError:
        return


def _problems_by_schema(tool: FunctionTool, arguments: dict[str, Any]) -> Iterator[str]:
    """Yield the mistakes that only the JSON Schema shows, for a tool without a function."""
    try:
        found = list(islice(compiled(tool.params_json_schema).iter_errors(arguments), _LISTED + 1))
    except (ValueError, RecursionError):
        return
    for error in found:
        path = _path(tuple(error.instance_path))
        reason = _short(error.message, 2 * _LONGEST_NAME)
        yield f"{path}: {reason}" if path else reason


def _described(problem: Any) -> str:
    path = _path(problem["loc"])
    kind, value = problem["type"], _shown(problem["input"])
    if kind == "missing":
        return f"{path}: is missing"
    if kind == "extra_forbidden":
        return f"{path}: is not a parameter"
    expected = _expected(kind, problem.get("ctx") or {})
    if expected is not None:
        return f"{path}: must be {expected}, not {value}"
    reason = problem["msg"]
    return f"{path}: {reason[:1].lower()}{_short(reason[1:], _LONGEST_NAME)}, not {value}"


def _expected(kind: str, context: Mapping[str, Any]) -> str | None:
    if kind in ("literal_error", "enum"):
        return f"one of {_short(str(context.get('expected')), 5 * _LONGEST_NAME)}"
    if not kind.endswith(_TYPE_ERRORS):
        return None
    return _EXPECTED.get(kind.split("_", 1)[0])


def _path(location: tuple[Any, ...]) -> str:
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    return _short(path, _LONGEST_NAME)


def _unknown(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    known = list(schema.get("properties") or ())
    for name in arguments:
        if name in known:
            continue
        near = nearest(name, known)
        hint = f"did you mean {near}?" if near else f"the parameters are {', '.join(known) or 'none'}"
        yield f"{_short(name, _LONGEST_NAME)}: is not a parameter, {_short(hint, 2 * _LONGEST_NAME)}"


def _shown(value: Any) -> str:
    try:
        return _short(json.dumps(value, ensure_ascii=False, default=str), _LONGEST_VALUE)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__}"


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
