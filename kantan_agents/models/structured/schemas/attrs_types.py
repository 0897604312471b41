"""Lets pydantic handle attrs classes anywhere in an output type.

Also ``typing.TypedDict`` before Python 3.12, which pydantic rejects.
"""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import attrs
import typing_extensions
from pydantic import GetCoreSchemaHandler
from pydantic_core import PydanticCustomError, PydanticSerializationError, core_schema, to_jsonable_python

_UNIONS = (Union, types.UnionType)
_QUALIFIERS = {
    getattr(module, name): name
    for module in (typing, typing_extensions)
    for name in ("Required", "NotRequired", "ReadOnly")
    if hasattr(module, name)
}
_JSON_DEFAULTS = (type(None), bool, int, float, str, list, tuple, dict)


def pydantic_type(output_type: Any) -> Any:
    """Return a type that pydantic accepts: ``output_type`` itself if it needs no help.

    Attrs classes are called, so that converters and validators run. NameError for undefined annotations.
    """
    return _Rewriting().root(output_type) if _needs_help(output_type, set()) else output_type


@attrs.frozen
class _Field:
    key: str
    annotation: Any
    is_required: bool
    default: Any = ...  # not a JSON value: no default
    attribute: str | None = None


@attrs.frozen
class _Reference:
    """Refers an annotation to the definition with the key ``ref``."""

    ref: str

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        return core_schema.definition_reference_schema(self.ref)


class _Rewriting:
    """Rewrites classes of one output type to definitions and references."""

    def __init__(self) -> None:
        self._refs: dict[Any, str] = {}
        self._waiting: list[Any] = []

    def root(self, output_type: Any) -> Any:
        rewritten = self._rewritten(output_type)

        def schema(_cls: type, _source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
            inner = handler.generate_schema(rewritten)
            done: dict[Any, core_schema.CoreSchema] = {}
            while len(done) < len(self._refs):
                done |= {cls: self._definition(cls, handler) for cls in list(self._refs) if cls not in done}
            return core_schema.definitions_schema(inner, list(done.values()))

        return type("OutputType", (), {"__get_pydantic_core_schema__": classmethod(schema)})

    def _rewritten(self, annotation: Any) -> Any:
        if _kind(annotation) is not None:
            if not _needs_help(annotation, set()):
                return annotation
            return Annotated[Any, _Reference(self._ref(annotation))]
        origin, args = get_origin(annotation), get_args(annotation)
        if origin is None or origin is Literal or not args:
            return annotation
        if origin is Annotated:
            return Annotated[(self._rewritten(args[0]), *args[1:])]
        inner = tuple(self._rewritten(one) if _is_type(one) else one for one in args)
        if all(new is old for new, old in zip(inner, args, strict=True)):
            return annotation
        if origin in _UNIONS:
            return Union[inner]  # noqa: UP007
        return types.GenericAlias(origin, inner) if isinstance(origin, type) else origin[inner]

    def _ref(self, cls: Any) -> str:
        if cls not in self._refs:
            origin = get_origin(cls) or cls
            # Pydantic's name is the part between the last dot and the colon.
            self._refs[cls] = f"{origin.__module__}.{origin.__qualname__}:{id(origin)}-{len(self._refs)}"
        return self._refs[cls]

    def _definition(self, cls: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        origin = get_origin(cls) or cls
        fields = list(_fields_of(cls))
        members = {}
        for field in fields:
            inner = handler.generate_schema(self._rewritten(field.annotation))
            if _is_json(field.default):
                inner = core_schema.with_default_schema(inner, default=field.default)
            members[field.key] = core_schema.typed_dict_field(inner, required=field.is_required)
        ref = self._refs[cls]
        if _kind(cls) == "TypedDict":
            return core_schema.typed_dict_schema(members, cls=origin, ref=ref)
        doc = origin.__doc__
        # A dataclass's default docstring is its signature.
        shown = None if doc is None or doc.startswith(f"{origin.__name__}(") else doc
        object_schema = core_schema.typed_dict_schema(
            members, cls=type(origin.__name__, (), {"__doc__": shown, "__module__": origin.__module__})
        )
        return core_schema.no_info_after_validator_function(
            _constructor(origin),
            object_schema,
            ref=ref,
            serialization=core_schema.plain_serializer_function_ser_schema(
                _serializer(fields), return_schema=object_schema
            ),
        )


def _constructor(cls: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
    def construct(values: dict[str, Any]) -> Any:
        try:
            return cls(**values)
        except (ValueError, TypeError) as error:
            # attrs appends attribute and value to an error's arguments.
            reason = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
            raise PydanticCustomError("class_error", "{reason}", {"reason": reason}) from error

    return construct


def _serializer(fields: list[_Field]) -> Callable[[Any], dict[str, Any]]:
    names = [(field.key, field.attribute or field.key) for field in fields]
    return lambda value: {key: getattr(value, attribute) for key, attribute in names}


def _kind(annotation: Any) -> Literal["attrs", "dataclass", "TypedDict"] | None:
    """Return the kind of a class with fields that pydantic does not own."""
    cls = get_origin(annotation) or annotation
    if not isinstance(cls, type) or hasattr(cls, "__get_pydantic_core_schema__"):
        return None
    if "__pydantic_core_schema__" in vars(cls):
        return None
    if attrs.has(cls):
        return "attrs"
    if dataclasses.is_dataclass(cls):
        return "dataclass"
    return "TypedDict" if typing_extensions.is_typeddict(cls) else None


def _is_old(typed_dict: Any) -> bool:
    return sys.version_info < (3, 12) and type(get_origin(typed_dict) or typed_dict).__module__ == "typing"


def _is_type(argument: Any) -> bool:
    return not isinstance(argument, list) and argument is not Ellipsis


def _needs_help(annotation: Any, seen: set[Any]) -> bool:
    kind = _kind(annotation)
    if kind == "attrs" or (kind == "TypedDict" and _is_old(annotation)):
        return True
    if kind is None:
        origin = get_origin(annotation)
        args = get_args(annotation) if origin is not Literal else ()
        args = args[:1] if origin is Annotated else args
        return any(_needs_help(one, seen) for one in args if _is_type(one))
    if annotation in seen:
        return False
    seen.add(annotation)
    try:
        fields = list(_fields_of(annotation))
    except (NameError, TypeError, AttributeError, SyntaxError):
        return False  # pydantic resolves annotations itself, and reports its own errors
    return any(_needs_help(field.annotation, seen) for field in fields)


def _fields_of(annotation: Any) -> Iterator[_Field]:
    cls = get_origin(annotation) or annotation
    kind = _kind(annotation)
    hints = typing_extensions.get_type_hints(cls, localns={cls.__name__: cls}, include_extras=True)
    given = dict(zip(getattr(cls, "__parameters__", ()), get_args(annotation), strict=False))
    if kind == "TypedDict":
        for name, hint in hints.items():
            inner, qualifiers = _unqualified(hint)
            is_required = name in cls.__required_keys__ and "NotRequired" not in qualifiers
            yield _Field(name, _filled(inner, given), is_required or "Required" in qualifiers)
    elif kind == "attrs":
        for attribute in attrs.fields(cls):
            if attribute.init:
                hint = _filled(hints.get(attribute.name, attribute.type or Any), given)
                default = attribute.default
                yield _Field(
                    attribute.alias or attribute.name, hint, default is attrs.NOTHING, default, attribute.name
                )
    else:
        for field in dataclasses.fields(cls):
            if field.init:
                has_default = field.default is not dataclasses.MISSING
                is_required = not has_default and field.default_factory is dataclasses.MISSING
                default = field.default if has_default else ...
                yield _Field(field.name, _filled(hints[field.name], given), is_required, default)


def _unqualified(hint: Any) -> tuple[Any, set[str]]:
    qualifiers = set()
    while get_origin(hint) in _QUALIFIERS:
        qualifiers.add(_QUALIFIERS[get_origin(hint)])
        hint = get_args(hint)[0]
    return hint, qualifiers


def _filled(hint: Any, given: Mapping[Any, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return given.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ()) if given else ()
    if isinstance(hint, type) and get_origin(hint) is None:
        return hint
    return hint[tuple(given.get(one, one) for one in parameters)] if parameters else hint


def _is_json(default: Any) -> bool:
    if not isinstance(default, _JSON_DEFAULTS):
        return False
    try:
        to_jsonable_python(default)
    except (PydanticSerializationError, ValueError):
        return False
    return True
