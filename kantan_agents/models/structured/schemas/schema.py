"""``OutputSchema``: an output type's schema and validation (spec 11)."""

from __future__ import annotations

import contextlib
import json
import types
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar, get_origin

from agents import AgentOutputSchema, AgentOutputSchemaBase
from pydantic import BaseModel, RootModel, TypeAdapter, ValidationError
from pydantic_core import from_json
from typing_extensions import Self, TypedDict

from kantan_agents.errors import KantanAgentsError, OutputSchemaError
from kantan_agents.models.structured.schemas.attrs_types import pydantic_type
from kantan_agents.models.structured.schemas.json_schema import (
    RESPONSE,
    JSONSchemaType,
    as_text,
    json_schema_type,
)
from kantan_agents.models.structured.schemas.problems import Examined, OutputProblem, problems_of
from kantan_agents.models.structured.schemas.readable import unreadable_parts
from kantan_agents.models.structured.schemas.restoring import Restorer, with_ints
from kantan_agents.models.structured.schemas.strict import strict_schema

_typed_dict: Any = TypedDict  # created at run time, so opaque to type checkers
_NOTHING: Any = object()  # None is a JSON value
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)


class OutputSchema(AgentOutputSchema):
    """The schema of an output type, in strict mode if that is lossless.

    Callable and without dataclass fields: the SDK identifies callables by name, but walks dataclasses twice
    per run, a third of a structured run's cost.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]] = {}
    _checks: JSONSchemaType | None

    def __init__(self, output_type: Any) -> None:
        if isinstance(output_type, JSONSchemaType):
            self.output_type = dict if not output_type.is_wrapped else object
            self._checks, self._is_wrapped = output_type, output_type.is_wrapped
            self._type_adapter = output_type.adapter()
            plain = output_type.schema
        else:
            self.output_type = output_type
            inner = pydantic_type(output_type)
            self._checks, self._is_wrapped = None, not _is_object_type(output_type)
            # As in the SDK, a value that may not be an object becomes the only property of one.
            wrapped = _typed_dict("OutputType", {RESPONSE: inner}) if self._is_wrapped else inner
            self._type_adapter = TypeAdapter(wrapped)
            plain = self._type_adapter.json_schema()
            self._check_readable()
        self._express(plain, strict_schema(plain))

    def _check_readable(self) -> None:
        problems = unreadable_parts(self._type_adapter.core_schema)
        if problems:
            raise OutputSchemaError(output_type=_shown(self.output_type), reason="; ".join(problems))

    def _express(self, plain: dict[str, Any], strict: dict[str, Any] | None) -> None:
        self._plain = plain
        self._output_schema = plain if strict is None else strict
        self._strict_json_schema = strict is not None
        restorer = Restorer(plain)
        self._restorer = restorer if restorer.adapts else None
        self._is_restored_first = self._restorer is not None and strict is not None

    @classmethod
    def adopt(cls, schema: AgentOutputSchema) -> Self:
        """Return an ``OutputSchema`` that behaves like ``schema``."""
        adopted = cls.__new__(cls)
        adopted.__dict__.update(vars(schema))
        if not isinstance(schema, OutputSchema):
            adopted._complete()
        return adopted

    def _complete(self) -> None:
        self._checks = None
        self._check_readable()
        if not self._strict_json_schema or self.is_plain_text():
            given, is_strict = self._output_schema, self._strict_json_schema
            self._express(given, None)
            self._strict_json_schema = is_strict
            return
        given, plain = self._output_schema, self._type_adapter.json_schema()
        adapted = strict_schema(plain)
        # A declared strict schema stays strict, although null may be ambiguous.
        self._express(plain, given if adapted is None else adapted)
        self._is_restored_first = self._is_restored_first and adapted is not None

    def __call__(self, json_str: str) -> Any:
        """Return ``validate_json(json_str)``."""
        return self.validate_json(json_str)

    @property
    def plain(self) -> dict[str, Any]:
        """The unadapted JSON Schema. Do not change it."""
        return self._plain

    @property
    def is_wrapped(self) -> bool:
        """Whether values are wrapped as ``{"response": value}``."""
        return self._is_wrapped

    def name(self) -> str:
        """Return the name of the output type."""
        return super().name() if self._checks is None else self._checks.name

    def validate_json(self, json_str: str) -> Any:
        """Return the value of JSON text; raise ModelBehaviorError if it does not fit."""
        try:
            _, validated = self._fit(json_str)
        except ValidationError:
            return super().validate_json(json_str)  # raises the SDK's error
        return validated[RESPONSE] if self._is_wrapped else validated

    def accepts(self, text: str) -> bool:
        """Return whether ``validate_json`` accepts ``text``."""
        try:
            self._fit(text)
        except ValidationError:
            return False
        return True

    def examine(self, value: Any) -> Examined:
        """Validate a parsed JSON value, wrapped or not. 2.0 fits an integer."""
        examined = self._examine(value)
        whole = with_ints(value) if examined.problems else value
        if whole is value:
            return examined
        again = self._examine(whole)
        return examined if again.problems else again

    def _examine(self, value: Any) -> Examined:
        forms = [value] if not self._is_wrapped or _has_response(value) else []
        forms += [{RESPONSE: value}] if self._is_wrapped else []
        failed: tuple[OutputProblem, ...] = ()
        for form in forms:
            try:
                text = json.dumps(form, ensure_ascii=False)
            except (TypeError, ValueError, RecursionError) as error:
                return Examined(value, (OutputProblem("", f"It is not JSON ({error})"),))
            try:
                fitting, _ = self._fit(text)
            except ValidationError as error:
                failed = failed or self._problems(text, error, is_bare=form is not value)
            else:
                return Examined(form if fitting == text else from_json(fitting))
        return Examined(value, failed)

    def _problems(self, text: str, error: ValidationError, *, is_bare: bool) -> tuple[OutputProblem, ...]:
        *_, form = self._forms(text)  # the last form tried
        value = _parsed(form)
        if value is _NOTHING:
            return problems_of(error, None)
        found = problems_of(error, value) if self._checks is None else self._checks.problems(value)
        if not is_bare:
            return found
        return tuple(OutputProblem(p.path.removeprefix(RESPONSE).removeprefix("."), p.message) for p in found)

    def _fit(self, text: str) -> tuple[str, Any]:
        if self._restorer is None or "null" not in text:
            return text, self._read(text)
        forms = [*self._forms(text)]
        for form in forms[:-1]:
            with contextlib.suppress(ValidationError):
                return form, self._read(form)
        return forms[-1], self._read(forms[-1])

    def _forms(self, text: str) -> Iterator[str]:
        """Yield the possible forms: restored from strict mode, unchanged, loosely restored."""
        value = _parsed(text) if self._restorer is not None and "null" in text else _NOTHING
        if self._restorer is None or value is _NOTHING:
            yield text
            return
        if self._is_restored_first:
            exact = self._restorer.exact(value)
            if exact is not value:
                yield json.dumps(exact, ensure_ascii=False)
        yield text
        loose = self._restorer.loose(value)
        if loose is not value:
            yield json.dumps(loose, ensure_ascii=False)

    def _read(self, text: str) -> Any:
        return self._type_adapter.validate_json(text, strict=True if self._strict_json_schema else None)


@lru_cache(maxsize=256)
def _schema_of(output_type: Any) -> OutputSchema:
    return _new_schema(output_type)


@lru_cache(maxsize=256)
def _schema_of_text(text: str) -> OutputSchema:
    return OutputSchema(json_schema_type(text))


def output_schema(output_type: Any) -> AgentOutputSchemaBase | None:
    """Return the value for the SDK agent's ``output_type``, cached; E41 if impossible."""
    if output_type is None or output_type is str:
        return None
    if type(output_type) is AgentOutputSchema:
        return OutputSchema.adopt(output_type)
    if isinstance(output_type, AgentOutputSchemaBase):
        return output_type
    if isinstance(output_type, dict):
        return _schema_of_text(as_text(output_type))
    try:
        return _schema_of(output_type)
    except TypeError:  # an unhashable annotation
        return _new_schema(output_type)


def _new_schema(output_type: Any) -> OutputSchema:
    if isinstance(output_type, _FUNCTIONS):
        raise OutputSchemaError(output_type=repr(output_type), reason="it is a function; give a type")
    try:
        return OutputSchema(output_type)
    except KantanAgentsError:
        raise
    except Exception as error:
        # Pydantic runs the type's code, which may raise anything.
        lines = [line.strip() for line in str(error).splitlines() if "errors.pydantic.dev" not in line]
        reason = " ".join(filter(None, lines)) or type(error).__name__
        raise OutputSchemaError(output_type=_shown(output_type), reason=reason) from error


def _shown(output_type: Any) -> str:
    return output_type.__qualname__ if isinstance(output_type, type) else repr(output_type)


def _is_object_type(output_type: Any) -> bool:
    """Return whether values are objects, even in root models; the SDK wraps others."""
    origin = get_origin(output_type) or output_type
    if not isinstance(origin, type) or not issubclass(origin, (BaseModel, dict)):
        return False
    return not (issubclass(origin, RootModel) and _root_of(output_type) != "object")


def _root_of(output_type: Any) -> Any:
    schema = TypeAdapter(output_type).json_schema()
    if "$ref" in schema:
        schema = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema.get("type")


def _parsed(text: str) -> Any:
    try:
        return from_json(text)
    except (ValueError, TypeError):  # TypeError if it is not valid Unicode
        return _NOTHING


def _has_response(value: Any) -> bool:
    return isinstance(value, dict) and RESPONSE in value
