"""``Value``: base class of the protocol's values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
from typing_extensions import Self

from kantan_agents.errors import InvalidProtocolValueError
from kantan_agents.models.protocol.json_data import find_problem, plain

_NAME = "camel"
_PART = "part"
_MANY = "many"
_NULL = "null"


def json_name(name: str) -> dict[str, Any]:
    """Return attrs metadata for a field's JSON name."""
    return {_NAME: name}


def nested_value(part: type[Value], *, many: bool = False) -> dict[str, Any]:
    """Return metadata for a field with a nested value or list."""
    return {_PART: part, _MANY: many}


def nullable() -> dict[str, Any]:
    """Return metadata for a field whose null is not absence."""
    return {_NULL: True}


@attrs.frozen
class Value:
    """Base class of the protocol's values.

    Attributes:
        extra: Fields that the protocol does not define, by name. Reading and writing a value preserves them.
    """

    extra: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True)

    def __attrs_post_init__(self) -> None:
        problems = list(self._problems())
        if self.extra == {}:  # the usual case
            pass
        elif not isinstance(self.extra, Mapping):
            problems.append(f"extra: must be a mapping, not {type(self.extra).__name__}")
        else:
            problems += [
                f"{name}: is a field of its own and not allowed in extra"
                for name in self.extra
                if name in self._spellings()
            ]
            problems += data_problems("extra", self.extra)
        if problems:
            raise InvalidProtocolValueError(value=type(self).__name__, problems=problems)

    def _problems(self) -> Iterable[str]:
        """Yield every problem, each starting with the field's JSON name."""
        return ()

    @classmethod
    def _spellings(cls) -> dict[str, attrs.Attribute[Any]]:
        fields = [field for field in attrs.fields(cls) if field.name != "extra" and field.init]
        return {_json_name(field): field for field in fields}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Create the value from its JSON object, with the protocol's names (``mimeType``, ``toolCall``).

        Raises:
            InvalidProtocolValueError: E50, ``data`` is invalid; ``problems`` lists all problems with paths.
        """
        if not isinstance(data, Mapping):
            problem = f"must be an object, not {type(data).__name__}"
            raise InvalidProtocolValueError(value=cls.__name__, problems=[problem])
        values: dict[str, Any] = {}
        problems: list[str] = []
        known = cls._spellings()
        for name, field in known.items():
            if name in data and (data[name] is not None or _allows_null(field)):
                values[field.name] = _read(field, name, data[name], problems)
        missing = [
            name
            for name, field in known.items()
            if field.default is attrs.NOTHING and field.name not in values
        ]
        problems += [f"{name}: is missing" for name in missing]
        if problems:
            raise InvalidProtocolValueError(value=cls.__name__, problems=problems)
        extra = {name: value for name, value in data.items() if name not in known}
        return cls(**values, extra=extra)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Create the value from its JSON text.

        Raises:
            InvalidProtocolValueError: E50, ``text`` is not valid JSON (NaN and Infinity are not allowed), or
                not a value of this class.
        """
        try:
            data = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError, TypeError) as error:
            problem = f"is not valid JSON: {error}"
            raise InvalidProtocolValueError(value=cls.__name__, problems=[problem]) from error
        return cls.from_dict(data)

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON data with the protocol's field names; fields that are None are omitted."""
        written = {}
        for name, field in self._spellings().items():
            value = getattr(self, field.name)
            if value is not None or _allows_null(field):
                written[name] = _to_json(value)
        return {**written, **plain(self.extra)}

    def to_json(self) -> str:
        """Return the value as JSON text; non-ASCII characters are not escaped."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)


def data_problems(name: str, value: Any) -> list[str]:
    """Return a field's problem with JSON, as a list."""
    problem = None if value is None else find_problem(value)
    return [] if problem is None else [f"{name}{problem}"]


def _allows_null(field: attrs.Attribute[Any]) -> bool:
    return field.default is attrs.NOTHING or _NULL in field.metadata


def _json_name(field: attrs.Attribute[Any]) -> str:
    spelling: str = field.metadata.get(_NAME, field.name)
    return spelling


def _read(field: attrs.Attribute[Any], name: str, value: Any, problems: list[str]) -> Any:
    part: type[Value] | None = field.metadata.get(_PART)
    if part is None:
        return value
    if not field.metadata.get(_MANY):
        return _part(part, name, value, problems)
    if not isinstance(value, (list, tuple)):
        problems.append(f"{name}: must be a list, not {type(value).__name__}")
        return ()
    return tuple(_part(part, f"{name}[{index}]", item, problems) for index, item in enumerate(value))


def _part(part: type[Value], path: str, value: Any, problems: list[str]) -> Any:
    try:
        return part.from_dict(value)
    except InvalidProtocolValueError as error:
        problems += [f"{path}{_separator(problem)}{problem}" for problem in error.problems]
        return None


def _separator(problem: str) -> str:
    field = problem.partition(":")[0]
    return "." if field and " " not in field else ": "


def _to_json(value: Any) -> Any:
    if isinstance(value, Value):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    return plain(value)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
