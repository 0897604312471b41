"""JSON Schema, and the subset of OpenAPI's schemas that the Gemini API has for itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.protocol.json_data import plain
from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.references import target
from kantan_agents.protocol.translate.told import with_told

_MOST_PARTS: Final = 5_000
_TYPES: Final = ("string", "number", "integer", "boolean", "array", "object", "null")
_SAYING: Final = frozenset({"title", "description", "default", "example"})
_SILENT: Final = frozenset(
    {"$schema", "$id", "$comment", "$defs", "definitions", "deprecated", "readOnly", "writeOnly", "strict"}
)
_COUNTS: Final = (
    "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties",
)  # fmt: skip
_AS_IS: Final = frozenset(
    {*_SAYING, *_COUNTS, "minimum", "maximum", "pattern", "required", "propertyOrdering"}
)
_FORMATS: Final = frozenset({"date-time", "enum", "float", "double", "int32", "int64"})


def schema_to_gemini(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema in the API's own subset of OpenAPI's schemas (``parameters``, ``responseSchema``).

    What a ``$ref`` refers to is put in its place. ``null`` becomes ``nullable``, ``const`` an ``enum`` of
    one, an exclusive bound of whole numbers the next one. A ``format`` the API does not know, and examples,
    are told in the description. ``additionalProperties`` is left out where it is true or false: the subset
    knows the properties that are named, and no word about others.

    Raises:
        UntranslatableError: E52, with the path of all that the subset cannot express; a schema that refers
            to itself, and one that grows beyond 5,000 parts, is among that.
    """
    losses = Losses("Gemini (OpenAPI schema)", "gemini")
    written = converted(schema, losses, "")
    losses.check()
    return written


def converted(schema: Mapping[str, Any], losses: Losses, path: str) -> dict[str, Any]:
    """Return a schema in the subset; what it cannot express is noted."""
    return _Subset(schema, losses).part(schema, path, ("#",))


class _Subset:
    def __init__(self, root: Mapping[str, Any], losses: Losses) -> None:
        self._root = root
        self._losses = losses
        self._parts = 0

    def part(self, schema: Any, path: str, way: tuple[str, ...]) -> dict[str, Any]:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            if self._parts == _MOST_PARTS + 1:
                self._losses.add(
                    path or "schema", f"grows beyond {_MOST_PARTS} parts when references are put in"
                )
            return {}
        if not isinstance(schema, Mapping):
            self._losses.add(path.rstrip(".") or "schema", "must be an object; true and false say no type")
            return {}
        if "$ref" in schema:
            return self._reference(schema, path, way)
        for keyword in ("allOf", "anyOf", "oneOf"):
            if keyword in schema:
                return self._combined(schema, keyword, path, way)
        return self._plain(schema, path, way)

    def _reference(self, schema: Mapping[str, Any], path: str, way: tuple[str, ...]) -> dict[str, Any]:
        reference = schema["$ref"]
        found = target(self._root, reference)
        if reference in way:
            self._losses.add(f"{path}$ref", f"{reference} refers to itself, and the subset has no references")
        elif not isinstance(found, Mapping):
            self._losses.add(f"{path}$ref", f"{str(reference)[:80]!r} is not in this schema")
        else:
            beside = self._saying(schema, {"$ref"}, path)
            return {**self.part(found, path, (*way, reference)), **beside}
        return {}

    def _combined(
        self, schema: Mapping[str, Any], keyword: str, path: str, way: tuple[str, ...]
    ) -> dict[str, Any]:
        branches = schema[keyword]
        beside = self._saying(schema, {keyword, "discriminator"}, path)
        if not isinstance(branches, (list, tuple)) or not branches:
            self._losses.add(f"{path}{keyword}", "must be a list of schemas")
            return {}
        if len(branches) > 1 and keyword == "allOf":
            self._losses.add(f"{path}allOf", "of several schemas cannot be expressed")
            return {}
        if len(branches) > 1 and keyword == "oneOf" and "discriminator" not in schema:
            self._losses.add(
                f"{path}oneOf", "without a discriminator cannot be expressed: anyOf would allow more"
            )
            return {}
        parts = [
            (place, branch)
            for place, branch in enumerate(branches)
            if branch not in ({"type": "null"}, {"const": None})
        ]
        written = [self.part(branch, f"{path}{keyword}[{place}].", way) for place, branch in parts]
        nullable = {"nullable": True} if len(parts) < len(branches) else {}
        if not written:
            return {"type": "NULL", **beside}
        return {**(written[0] if len(written) == 1 else {"anyOf": written}), **nullable, **beside}

    def _saying(self, schema: Mapping[str, Any], but: set[str], path: str) -> dict[str, Any]:
        for keyword in schema:
            if keyword not in but and keyword not in _SAYING and keyword not in _SILENT:
                self._losses.add(f"{path}{keyword}", f"cannot stand beside {min(but)}")
        return {keyword: plain(value) for keyword, value in schema.items() if keyword in _SAYING}

    def _plain(self, schema: Mapping[str, Any], path: str, way: tuple[str, ...]) -> dict[str, Any]:
        types = self._types(schema, path)
        if len(types) > 1:
            return self._several(schema, types, path, way)
        out: dict[str, Any] = {}
        told: dict[str, Any] = {}
        kind = types[0] if types else "string"
        out["type"] = kind.upper()
        if kind == "array" and "items" not in schema:
            self._losses.add(f"{path}items", "is missing, and the subset needs it")
        for keyword, value in schema.items():
            where = f"{path}{keyword}"
            if keyword == "properties" and isinstance(value, Mapping):
                out[keyword] = {
                    name: self.part(part, f"{where}.{name}.", way) for name, part in value.items()
                }
            elif keyword == "items":
                out[keyword] = self.part(value, f"{where}.", way)
            elif keyword in _AS_IS or (keyword == "format" and value in _FORMATS):
                out[keyword] = plain(value)
            elif keyword in ("format", "examples"):
                told[keyword] = plain(value)
            elif not self._special(keyword, value, kind, out):
                self._losses.add(where, "cannot be expressed")
        return with_told(out, told)

    def _special(self, keyword: str, value: Any, kind: str, out: dict[str, Any]) -> bool:
        """Write a keyword that changes its form; return whether that can be done."""
        if keyword in _SILENT or keyword == "type":
            return True
        if keyword == "additionalProperties":
            return isinstance(value, bool)
        if keyword in ("enum", "const"):
            return _choices([value] if keyword == "const" else value, kind, out)
        if keyword == "nullable":
            out[keyword] = value
            return isinstance(value, bool)
        is_whole = kind == "integer" and isinstance(value, int) and not isinstance(value, bool)
        if keyword == "exclusiveMinimum" and is_whole:
            out["minimum"] = max(value + 1, out.get("minimum", value + 1))
            return True
        if keyword == "exclusiveMaximum" and is_whole:
            out["maximum"] = min(value - 1, out.get("maximum", value - 1))
            return True
        return False

    def _types(self, schema: Mapping[str, Any], path: str) -> list[str]:
        given = schema.get("type")
        types: list[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
        if given is None:
            types = _guessed(schema)
        if not types or not all(isinstance(name, str) and name.lower() in _TYPES for name in types):
            said = "says no type" if given is None else f"is not one of {', '.join(_TYPES)}"
            self._losses.add(f"{path}type" if given is not None else path.rstrip(".") or "schema", said)
            return []
        return [name.lower() for name in types]

    def _several(
        self, schema: Mapping[str, Any], types: list[str], path: str, way: tuple[str, ...]
    ) -> dict[str, Any]:
        others = [name for name in types if name != "null"]
        rest = {name: value for name, value in schema.items() if name != "type"}
        nullable = {"nullable": True} if "null" in types else {}
        if nullable and isinstance(rest.get("enum"), (list, tuple)):
            rest["enum"] = [choice for choice in rest["enum"] if choice is not None]
        if len(others) == 1:
            return {**self.part({"type": others[0], **rest}, path, way), **nullable}
        beside = self._saying(rest, {"type of several"}, path)
        return {"anyOf": [{"type": name.upper()} for name in others], **nullable, **beside}


def _guessed(schema: Mapping[str, Any]) -> list[str]:
    choices = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if isinstance(choices, (list, tuple)) and choices and all(isinstance(choice, str) for choice in choices):
        return ["string"]
    if "const" in schema and isinstance(schema["const"], int) and not isinstance(schema["const"], bool):
        return ["integer"]
    return ["object"] if "properties" in schema else ["array"] if "items" in schema else []


def _choices(choices: Any, kind: str, out: dict[str, Any]) -> bool:
    if not isinstance(choices, (list, tuple)) or not choices:
        return False
    if kind == "string" and all(isinstance(choice, str) for choice in choices):
        out["enum"] = list(choices)
        return True
    one = choices[0]
    if kind == "integer" and len(choices) == 1 and isinstance(one, int) and not isinstance(one, bool):
        out["minimum"] = out["maximum"] = one
        return True
    return False


def schema_from_gemini(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of the API's own subset as JSON Schema; ``nullable`` becomes the type ``null``."""
    out: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "type" and isinstance(value, str):
            out[keyword] = value.lower()
        elif keyword == "properties" and isinstance(value, Mapping):
            out[keyword] = {name: _from(part) for name, part in value.items()}
        elif keyword == "items":
            out[keyword] = _from(value)
        elif keyword == "anyOf" and isinstance(value, (list, tuple)):
            out[keyword] = [_from(part) for part in value]
        elif keyword in _COUNTS and isinstance(value, str) and value.isdigit():
            out[keyword] = int(value)  # JSON of protocol buffers writes 64 bits as text
        elif keyword != "nullable":
            out[keyword] = plain(value)
    return _with_null(out) if schema.get("nullable") is True else out


def _from(part: Any) -> Any:
    return schema_from_gemini(part) if isinstance(part, Mapping) else plain(part)


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if isinstance(schema.get("enum"), list):
        schema = {**schema, "enum": [*schema["enum"], None]}
    return {**schema, "type": [schema["type"], "null"]} if isinstance(schema.get("type"), str) else schema
