"""What the values of the protocol share: they are checked when they are made, and are JSON and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
from typing_extensions import Self

from kantan_agents.errors import InvalidProtocolValueError
from kantan_agents.protocol.json_data import flaw, plain

_CAMEL = "camel"
_PART = "part"
_MANY = "many"
_NULL = "null"


def spelled(name: str) -> dict[str, Any]:
    """Return metadata of a field that JSON spells as ``name``."""
    return {_CAMEL: name}


def made_of(part: type[Value], *, many: bool = False) -> dict[str, Any]:
    """Return metadata of a field that holds another value of the protocol, or a list of them."""
    return {_PART: part, _MANY: many}


def nullable() -> dict[str, Any]:
    """Return metadata of a field whose null is a value of its own, and not the same as leaving it out."""
    return {_NULL: True}


@attrs.frozen
class Value:
    """A value of the protocol.

    Attributes:
        extra: Fields the protocol does not know, by name; they are kept and written back.
    """

    extra: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True)

    def __attrs_post_init__(self) -> None:
        problems = list(self._mistakes())
        if self.extra == {}:  # the usual case
            pass
        elif not isinstance(self.extra, Mapping):
            problems.append(f"extra: must be a mapping, not {type(self.extra).__name__}")
        else:
            problems += [f"{name}: is no unknown field" for name in self.extra if name in self._spellings()]
            problems += data_problems("extra", self.extra)
        if problems:
            raise InvalidProtocolValueError(value=type(self).__name__, problems=problems)

    def _mistakes(self) -> Iterable[str]:
        """Yield what is wrong, each mistake beginning with the field's name."""
        return ()

    @classmethod
    def _spellings(cls) -> dict[str, attrs.Attribute[Any]]:
        fields = [field for field in attrs.fields(cls) if field.name != "extra"]
        return {_camel(field): field for field in fields}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make the value of its JSON object, in the protocol's spelling (``mimeType``, ``toolCall``).

        Raises:
            InvalidProtocolValueError: E50; ``problems`` has every mistake with its path.
        """
        if not isinstance(data, Mapping):
            problem = f"must be an object, not {type(data).__name__}"
            raise InvalidProtocolValueError(value=cls.__name__, problems=[problem])
        values: dict[str, Any] = {}
        problems: list[str] = []
        known = cls._spellings()
        for name, field in known.items():
            if name in data and (data[name] is not None or _keeps_null(field)):
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
        """Make the value of its JSON text.

        Raises:
            InvalidProtocolValueError: E50; it is no JSON (NaN and Infinity are none), or not such a value.
        """
        try:
            data = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError, TypeError) as error:
            raise InvalidProtocolValueError(value=cls.__name__, problems=[f"is no JSON: {error}"]) from error
        return cls.from_dict(data)

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON data in the protocol's spelling; fields that say nothing are left out."""
        written = {}
        for name, field in self._spellings().items():
            value = getattr(self, field.name)
            if value is not None or _keeps_null(field):
                written[name] = _written(value)
        return {**written, **plain(self.extra)}

    def to_json(self) -> str:
        """Return the value as JSON text, non-ASCII characters as they are."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)


def data_problems(name: str, value: Any) -> list[str]:
    """Return what keeps the value of a field from being JSON data."""
    problem = None if value is None else flaw(value)
    return [] if problem is None else [f"{name}{problem}"]


def _keeps_null(field: attrs.Attribute[Any]) -> bool:
    return field.default is attrs.NOTHING or _NULL in field.metadata


def _camel(field: attrs.Attribute[Any]) -> str:
    spelling: str = field.metadata.get(_CAMEL, field.name)
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
    return tuple(_part(part, f"{name}[{place}]", item, problems) for place, item in enumerate(value))


def _part(part: type[Value], path: str, value: Any, problems: list[str]) -> Any:
    try:
        return part.from_dict(value)
    except InvalidProtocolValueError as error:
        problems += [f"{path}{_joint(problem)}{problem}" for problem in error.problems]
        return None


def _joint(problem: str) -> str:
    field = problem.partition(":")[0]
    return "." if field and " " not in field else ": "


def _written(value: Any) -> Any:
    if isinstance(value, Value):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_written(item) for item in value]
    return plain(value)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
