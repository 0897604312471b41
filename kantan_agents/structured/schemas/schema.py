"""Structured output: the schema the SDK sees, and what it says about values (spec 11)."""

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
from kantan_agents.structured.schemas.attrs_types import understood
from kantan_agents.structured.schemas.json_schema import RESPONSE, JSONSchemaType, as_text, json_schema_type
from kantan_agents.structured.schemas.problems import Examined, Problem, problems_of
from kantan_agents.structured.schemas.restoring import Restorer
from kantan_agents.structured.schemas.strict import strict_schema

_typed_dict: Any = TypedDict  # made from annotations that no type checker knows
_NOTHING: Any = object()  # null is a value
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)


class OutputSchema(AgentOutputSchema):
    """What a model's output must be, as the SDK, a provider and a caller need it.

    In strict mode wherever that loses nothing, else the schema as it is; what has been changed for the wire
    is changed back before a value is validated.

    The SDK computes each agent's identity twice a run and walks every field of every dataclass on it,
    here a whole JSON schema: a third of the cost of a structured run. Callables it identifies by their name
    alone, so schemas are callable; one that looks at the fields all the same finds none declared.

    Args:
        output_type: A type that is not plain text, or a checked JSON Schema.
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
            inner = understood(output_type)
            self._checks, self._is_wrapped = None, not _is_object_type(output_type)
            # As the SDK wraps: what must not be an object is the one property of one.
            wrapped = _typed_dict("OutputType", {RESPONSE: inner}) if self._is_wrapped else inner
            self._type_adapter = TypeAdapter(wrapped)
            plain = self._type_adapter.json_schema()
        self._express(plain, strict_schema(plain))

    def _express(self, plain: dict[str, Any], strict: dict[str, Any] | None) -> None:
        self._plain = plain
        self._output_schema = plain if strict is None else strict
        self._strict_json_schema = strict is not None
        restorer = Restorer(plain)
        self._restorer = restorer if restorer.adapts else None
        self._is_restored_first = self._restorer is not None and strict is not None

    @classmethod
    def adopt(cls, schema: AgentOutputSchema) -> Self:
        """Return an ``OutputSchema`` that behaves as ``schema`` does."""
        adopted = cls.__new__(cls)
        adopted.__dict__.update(vars(schema))
        if not isinstance(schema, OutputSchema):
            adopted._complete()
        return adopted

    def _complete(self) -> None:
        self._checks = None
        if not self._strict_json_schema or self.is_plain_text():
            given, is_strict = self._output_schema, self._strict_json_schema
            self._express(given, None)
            self._strict_json_schema = is_strict
            return
        given, plain = self._output_schema, self._type_adapter.json_schema()
        adapted = strict_schema(plain)
        # Who asks the SDK for strictness gets it, though null may then stand for more than one thing.
        self._express(plain, given if adapted is None else adapted)
        self._is_restored_first = self._is_restored_first and adapted is not None

    def __call__(self, json_str: str) -> Any:
        """Return ``validate_json(json_str)``."""
        return self.validate_json(json_str)

    @property
    def plain(self) -> dict[str, Any]:
        """The JSON Schema as the type means it: for a tool's parameters, or a prompt. Not to be changed."""
        return self._plain

    @property
    def is_wrapped(self) -> bool:
        """Whether values come as ``{"response": value}``."""
        return self._is_wrapped

    def name(self) -> str:
        """Return the name of the output type."""
        return super().name() if self._checks is None else self._checks.name

    def validate_json(self, json_str: str) -> Any:
        """Return the value of a JSON text in the output type.

        Raises:
            ModelBehaviorError: It does not fit.
        """
        try:
            _, validated = self._fit(json_str)
        except ValidationError:
            return super().validate_json(json_str)  # says so as the SDK does
        return validated[RESPONSE] if self._is_wrapped else validated

    def accepts(self, text: str) -> bool:
        """Return whether ``validate_json`` takes a text."""
        try:
            self._fit(text)
        except ValidationError:
            return False
        return True

    def examine(self, value: Any) -> Examined:
        """Return what is wrong with a JSON value that somebody else has parsed.

        Args:
            value: Any value. Where values are wrapped, it may come without that.

        Returns:
            The value and its problems. Without problems ``validate_json`` takes its JSON text.
        """
        forms = [value] if not self._is_wrapped or _has_response(value) else []
        forms += [{RESPONSE: value}] if self._is_wrapped else []
        failed: tuple[Problem, ...] = ()
        for form in forms:
            try:
                text = json.dumps(form, ensure_ascii=False)
            except (TypeError, ValueError, RecursionError) as error:
                return Examined(value, (Problem("", f"It is no JSON ({error})"),))
            try:
                fitting, _ = self._fit(text)
            except ValidationError as error:
                failed = failed or self._problems(text, error, is_bare=form is not value)
            else:
                return Examined(form if fitting == text else from_json(fitting))
        return Examined(value, failed)

    def _problems(self, text: str, error: ValidationError, *, is_bare: bool) -> tuple[Problem, ...]:
        *_, form = self._forms(text)  # the one that was tried last
        value = _parsed(form)
        if value is _NOTHING:
            return problems_of(error, None)
        found = problems_of(error, value) if self._checks is None else self._checks.problems(value)
        if not is_bare:
            return found
        return tuple(Problem(p.path.removeprefix(RESPONSE).removeprefix("."), p.message) for p in found)

    def _fit(self, text: str) -> tuple[str, Any]:
        """Return the first form of a text that fits, and its value; ValidationError if none does."""
        if self._restorer is None or "null" not in text:
            return text, self._read(text)
        forms = [*self._forms(text)]
        for form in forms[:-1]:
            with contextlib.suppress(ValidationError):
                return form, self._read(form)
        return forms[-1], self._read(forms[-1])

    def _forms(self, text: str) -> Iterator[str]:
        """Yield the text as it may have been meant: changed for the wire, as it is, or something between."""
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
    """Return what goes into the SDK agent's ``output_type``; built once per type and process.

    Args:
        output_type: A type, a JSON Schema as a dict, a schema object of the SDK, or None or str for plain
            text.

    Raises:
        OutputSchemaError: E41, it cannot be expressed as a JSON schema.
    """
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
        # Pydantic runs code of the type's own, which may raise anything.
        lines = [line.strip() for line in str(error).splitlines() if "errors.pydantic.dev" not in line]
        reason = " ".join(filter(None, lines)) or type(error).__name__
        shown = output_type.__qualname__ if isinstance(output_type, type) else repr(output_type)
        raise OutputSchemaError(output_type=shown, reason=reason) from error


def _is_object_type(output_type: Any) -> bool:
    """Return whether values of a type are objects: what the SDK does not wrap, but for root models."""
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
    except (ValueError, TypeError):  # the latter for what is no Unicode
        return _NOTHING


def _has_response(value: Any) -> bool:
    return isinstance(value, dict) and RESPONSE in value
