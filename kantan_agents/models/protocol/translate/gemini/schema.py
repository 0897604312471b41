"""Translates between JSON Schema and Gemini's subset of OpenAPI schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.models.protocol.json_data import plain
from kantan_agents.models.protocol.translate.json_schema import describe_keywords, resolve
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.reader import WireReader

_MAX_SCHEMAS: Final = 5_000
_TYPES: Final = ("string", "number", "integer", "boolean", "array", "object", "null")
_ANNOTATIONS: Final = frozenset({"title", "description", "default", "example"})
_IGNORED: Final = frozenset(
    {"$schema", "$id", "$comment", "$defs", "definitions", "deprecated", "readOnly", "writeOnly", "strict"}
)
_COUNTS: Final = (
    "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties",
)  # fmt: skip
_COUNT: Final = re.compile(r"[0-9]{1,19}")
_COPIED: Final = frozenset(
    {*_ANNOTATIONS, *_COUNTS, "minimum", "maximum", "pattern", "required", "propertyOrdering"}
)
_FORMATS: Final = frozenset({"date-time", "enum", "float", "double", "int32", "int64"})


def schema_to_gemini(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema in the API's subset of OpenAPI schemas (``parameters``, ``responseSchema``).

    Each ``$ref`` becomes its target, ``null`` becomes ``nullable``, ``const`` an ``enum`` with one value, and
    an integer's exclusive bound the next integer. Examples, and a ``format`` that the API does not support,
    move to the description. A boolean ``additionalProperties`` is dropped, because the subset lacks the
    keyword.

    Raises:
        UntranslatableError: E52, with the path of everything that the subset cannot express, including
            recursion, and growth beyond 5,000 schemas.
    """
    losses = Losses("Gemini (OpenAPI schema)", "gemini")
    written = convert_schema(schema, losses, "")
    losses.check()
    return written


def convert_schema(schema: Mapping[str, Any], losses: Losses, path: str) -> dict[str, Any]:
    """Return a schema in the subset, and record losses."""
    return _Converter(schema, losses).convert(schema, path, ("#",))


class _Converter:
    def __init__(self, root: Mapping[str, Any], losses: Losses) -> None:
        self._root = root
        self._losses = losses
        self._count = 0

    def convert(self, schema: Any, path: str, references: tuple[str, ...]) -> dict[str, Any]:
        self._count += 1
        if self._count > _MAX_SCHEMAS:
            if self._count == _MAX_SCHEMAS + 1:
                self._losses.add(
                    path or "schema", f"grows beyond {_MAX_SCHEMAS} parts when references are resolved"
                )
            return {}
        if not isinstance(schema, Mapping):
            self._losses.add(path.rstrip(".") or "schema", "must be an object; true and false define no type")
            return {}
        if "$ref" in schema:
            return self._reference(schema, path, references)
        for keyword in ("allOf", "anyOf", "oneOf"):
            if keyword in schema:
                return self._union(schema, keyword, path, references)
        return self._single(schema, path, references)

    def _reference(self, schema: Mapping[str, Any], path: str, references: tuple[str, ...]) -> dict[str, Any]:
        reference = schema["$ref"]
        found = resolve(self._root, reference)
        if reference in references:
            self._losses.add(f"{path}$ref", f"{reference} refers to itself, and the subset has no references")
        elif not isinstance(found, Mapping):
            self._losses.add(f"{path}$ref", f"{str(reference)[:80]!r} is not in this schema")
        else:
            annotations = self._annotations(schema, {"$ref"}, path)
            return {**self.convert(found, path, (*references, reference)), **annotations}
        return {}

    def _union(
        self, schema: Mapping[str, Any], keyword: str, path: str, references: tuple[str, ...]
    ) -> dict[str, Any]:
        branches = schema[keyword]
        annotations = self._annotations(schema, {keyword, "discriminator"}, path)
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
            (index, branch)
            for index, branch in enumerate(branches)
            if branch not in ({"type": "null"}, {"const": None})
        ]
        written = [self.convert(branch, f"{path}{keyword}[{index}].", references) for index, branch in parts]
        nullable = {"nullable": True} if len(parts) < len(branches) else {}
        if not written:
            return {"type": "NULL", **annotations}
        return {**(written[0] if len(written) == 1 else {"anyOf": written}), **nullable, **annotations}

    def _annotations(self, schema: Mapping[str, Any], but: set[str], path: str) -> dict[str, Any]:
        for keyword in schema:
            if keyword not in but and keyword not in _ANNOTATIONS and keyword not in _IGNORED:
                self._losses.add(f"{path}{keyword}", f"is not allowed together with {min(but)}")
        return {keyword: plain(value) for keyword, value in schema.items() if keyword in _ANNOTATIONS}

    def _single(self, schema: Mapping[str, Any], path: str, references: tuple[str, ...]) -> dict[str, Any]:
        types = self._types(schema, path)
        if len(types) > 1:
            return self._type_union(schema, types, path, references)
        out: dict[str, Any] = {}
        described: dict[str, Any] = {}
        kind = types[0] if types else "string"
        out["type"] = kind.upper()
        if kind == "array" and "items" not in schema:
            self._losses.add(f"{path}items", "is missing, and the subset needs it")
        for keyword, value in schema.items():
            where = f"{path}{keyword}"
            if keyword == "properties" and isinstance(value, Mapping):
                out[keyword] = {
                    name: self.convert(part, f"{where}.{name}.", references) for name, part in value.items()
                }
            elif keyword == "items":
                out[keyword] = self.convert(value, f"{where}.", references)
            elif keyword in _COPIED or (keyword == "format" and value in _FORMATS):
                out[keyword] = plain(value)
            elif keyword in ("format", "examples"):
                described[keyword] = plain(value)
            elif not self._convert_keyword(keyword, value, kind, out):
                self._losses.add(where, "cannot be expressed")
        return describe_keywords(out, described)

    def _convert_keyword(self, keyword: str, value: Any, kind: str, out: dict[str, Any]) -> bool:
        if keyword in _IGNORED or keyword == "type":
            return True
        if keyword == "additionalProperties":
            return isinstance(value, bool)
        if keyword in ("enum", "const"):
            return _write_choices([value] if keyword == "const" else value, kind, out)
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
            types = _inferred_types(schema)
        if not types or not all(isinstance(name, str) and name.lower() in _TYPES for name in types):
            problem = "defines no type" if given is None else f"is not one of {', '.join(_TYPES)}"
            self._losses.add(f"{path}type" if given is not None else path.rstrip(".") or "schema", problem)
            return []
        return [name.lower() for name in types]

    def _type_union(
        self, schema: Mapping[str, Any], types: list[str], path: str, references: tuple[str, ...]
    ) -> dict[str, Any]:
        others = [name for name in types if name != "null"]
        rest = {name: value for name, value in schema.items() if name != "type"}
        nullable = {"nullable": True} if "null" in types else {}
        if nullable and isinstance(rest.get("enum"), (list, tuple)):
            rest["enum"] = [choice for choice in rest["enum"] if choice is not None]
        if len(others) == 1:
            return {**self.convert({"type": others[0], **rest}, path, references), **nullable}
        annotations = self._annotations(rest, {"type of several"}, path)
        return {"anyOf": [{"type": name.upper()} for name in others], **nullable, **annotations}


def _inferred_types(schema: Mapping[str, Any]) -> list[str]:
    choices = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if isinstance(choices, (list, tuple)) and choices and all(isinstance(choice, str) for choice in choices):
        return ["string"]
    if "const" in schema and isinstance(schema["const"], int) and not isinstance(schema["const"], bool):
        return ["integer"]
    return ["object"] if "properties" in schema else ["array"] if "items" in schema else []


def _write_choices(choices: Any, kind: str, out: dict[str, Any]) -> bool:
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
    """Return a schema in the API's subset as JSON Schema; ``nullable`` becomes the type ``null``.

    Raises:
        InvalidProtocolValueError: E50, ``schema`` is not an object of JSON data.
    """
    return _schema_back(WireReader("schema of the Gemini API", "gemini").expect(schema, dict))


def _schema_back(schema: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "type" and isinstance(value, str):
            out[keyword] = value.lower()
        elif keyword == "properties" and isinstance(value, Mapping):
            out[keyword] = {name: _convert_back(part) for name, part in value.items()}
        elif keyword == "items":
            out[keyword] = _convert_back(value)
        elif keyword == "anyOf" and isinstance(value, (list, tuple)):
            out[keyword] = [_convert_back(part) for part in value]
        elif keyword in _COUNTS and isinstance(value, str) and _COUNT.fullmatch(value):
            out[keyword] = int(value)  # protocol buffers write 64-bit integers as strings
        elif keyword != "nullable":
            out[keyword] = plain(value)
    return _with_null(out) if schema.get("nullable") is True else out


def _convert_back(part: Any) -> Any:
    return _schema_back(part) if isinstance(part, Mapping) else plain(part)


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if isinstance(schema.get("enum"), list):
        schema = {**schema, "enum": [*schema["enum"], None]}
    return {**schema, "type": [schema["type"], "null"]} if isinstance(schema.get("type"), str) else schema
