"""``JSONSchemaType``: a JSON Schema as an output type."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NoReturn

import attrs
import jsonschema_rs
from pydantic import AfterValidator, TypeAdapter
from pydantic_core import PydanticCustomError

from kantan_agents.errors import OutputSchemaError
from kantan_agents.models.structured.schemas.problems import OutputProblem, path_text
from kantan_agents.models.structured.schemas.restoring import Restorer
from kantan_agents.models.structured.schemas.schema_nodes import DEFINITIONS, UNIONS, Nodes

RESPONSE = "response"
_PATTERN_SIZE = 1 << 18
_DATA = frozenset({"const", "default", "enum", "examples"})
_BY_NAME = frozenset({"properties", "patternProperties", "dependentSchemas", *DEFINITIONS})


@attrs.frozen
class JSONSchemaType:
    """A JSON Schema that validates values, without remote references.

    ``schema`` is wrapped as ``{"response": ...}`` if its values need not be objects.
    """

    schema: dict[str, Any]
    is_wrapped: bool
    name: str
    _validator: Any = attrs.field(repr=False, eq=False)
    _restorer: Restorer = attrs.field(repr=False, eq=False)

    def problems(self, value: Any) -> tuple[OutputProblem, ...]:
        """Return the problems of a JSON value."""
        found = map(_problem, self._validator.iter_errors(value))
        return tuple(dict.fromkeys(found))

    def checked(self, value: Any) -> Any:
        """Return a value with defaults; raise PydanticCustomError."""
        if not self._validator.is_valid(value):
            listed = "; ".join(map(str, self.problems(value)))
            raise PydanticCustomError("json_schema", "{problems}", {"problems": listed})
        return self._restorer.filled(value)

    def adapter(self) -> TypeAdapter[Any]:
        """Return a pydantic adapter for its values."""
        return TypeAdapter(Annotated[Any, AfterValidator(self.checked)])


def as_text(schema: Mapping[str, Any]) -> str:
    """Return a schema as ordered JSON, a cache key; E41 if impossible."""
    try:
        text = json.dumps(schema, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise _error(schema, f"it is not JSON ({error})") from error
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            for key in node:
                if not isinstance(key, str):
                    raise _error(schema, f"the key {key!r} is not a str")
            waiting.extend(node.values())
        elif isinstance(node, (list, tuple)):
            waiting.extend(node)
    return text


def json_schema_type(text: str) -> JSONSchemaType:
    """Return the type for a schema; E41 if it is invalid or unresolvable."""
    schema = json.loads(text)
    validator_of(schema)  # before any change, so that errors show the author's paths
    _reject_circular_references(schema)
    title = schema.get("title")
    name = title if isinstance(title, str) and title else "output"
    is_object = _is_object(schema)
    whole = {"type": "object", **schema} if is_object and "$ref" not in schema else schema
    whole = whole if is_object else _wrapped(schema)
    return JSONSchemaType(whole, not is_object, name, validator_of(whole, mask="Input"), Restorer(whole))


def validator_of(schema: dict[str, Any], mask: str | None = None) -> Any:
    """Return a validator that fetches nothing and takes linear time; E41.

    ``mask`` replaces values in messages.
    """
    try:
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=True,
            mask=mask,
            retriever=_not_fetched,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=_PATTERN_SIZE),
        )
    except jsonschema_rs.ValidationError as error:
        # Only an invalid keyword has a path, not an unresolvable reference.
        at = path_text(error.instance_path)
        raise _error(schema, f"{at}: {error.message}" if at else error.message) from None
    except ValueError as error:
        raise _error(schema, str(error)) from error


def _reject_circular_references(schema: dict[str, Any]) -> None:
    nodes, resolved = Nodes(schema), set[int]()
    for node in _references(schema):
        steps: dict[int, str] = {}
        while isinstance(node, dict) and "$ref" in node and id(node) not in resolved:
            if id(node) in steps:
                raise _error(schema, f"{node['$ref']} refers only to itself")
            steps[id(node)] = node["$ref"]
            node = nodes.target(node["$ref"])  # noqa: PLW2901
        resolved |= steps.keys()


def _not_fetched(_uri: str) -> NoReturn:
    raise ValueError("remote references are not fetched; put the schema under $defs")


def _error(schema: Any, reason: str) -> OutputSchemaError:
    title = schema.get("title") if isinstance(schema, dict) else None
    named = f"the JSON schema {title!r}" if isinstance(title, str) else "the JSON schema"
    return OutputSchemaError(output_type=named, reason=reason)


def _problem(error: Any) -> OutputProblem:
    if error.kind.name == "required":
        return OutputProblem(path_text([*error.instance_path, error.kind.property]), "Field required")
    return OutputProblem(path_text(error.instance_path), error.message)


def _is_object(schema: dict[str, Any]) -> bool:
    root = Nodes(schema).applying(schema)
    if root is None or any(union in root for union in UNIONS):
        return False
    return root.get("type", "object" if "properties" in root else None) == "object"


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    at_top = ("$schema", *DEFINITIONS)
    inner: Any = {key: value for key, value in schema.items() if key not in {*at_top, "$id"}}
    top = {key: schema[key] for key in at_top if key in schema}
    if any(not _is_definition(node["$ref"]) for node in _references(schema)):
        # References into the root must point to its new location.
        name = "output"
        while name in top.get("$defs", {}):
            name += "_"
        for node in _references([inner, top]):
            if node["$ref"].startswith("#") and not _is_definition(node["$ref"]):
                node["$ref"] = f"#/$defs/{name}{node['$ref'][1:]}"
        top["$defs"] = {**top.get("$defs", {}), name: inner}
        inner = {"$ref": f"#/$defs/{name}"}
    properties = {RESPONSE: inner}
    return {
        "type": "object",
        "properties": properties,
        "required": [RESPONSE],
        "additionalProperties": False,
        **top,
    }


def _is_definition(ref: str) -> bool:
    return any(ref.startswith(f"#/{keyword}/") for keyword in DEFINITIONS)


def _references(schema: Any) -> Iterator[dict[str, Any]]:
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node
            for key, value in node.items():
                if key in _BY_NAME and isinstance(value, dict):
                    waiting.extend(value.values())
                elif key not in _DATA:
                    waiting.append(value)
        elif isinstance(node, list):
            waiting.extend(node)
