"""``copy_function`` gives the same copies as the SDK."""

from __future__ import annotations

import copy
import enum
import json
from typing import Any

import agents.strict_schema
import numpy as np
import pytest
from agents import FunctionTool, UserError, function_tool
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.tools.guards.functions import _strict_schema, copy_function


async def forecast(city: str, days: int = 3, units: list[str] | None = None) -> str:
    """Forecast the weather.

    Args:
        city: Where.
        days: For how long.
        units: Of what.
    """
    return f"{city}, {days}, {units}"


def fields_of(tool: FunctionTool) -> dict[str, Any]:
    return {name: value for name, value in vars(tool).items() if name != "on_invoke_tool"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strict_mode": False},
        {"is_enabled": False},
        {"needs_approval": True, "timeout": 3.0, "timeout_behavior": "raise_exception"},
        {"defer_loading": True, "failure_error_function": None},
    ],
    ids=str,
)
def test_a_copy_equals_the_sdks(options: Any) -> None:
    tool = function_tool(forecast, **options)
    tool.noted = "by its user"  # type: ignore[attr-defined]
    copied, expected = copy_function(tool), copy.copy(tool)
    assert fields_of(copied) == fields_of(expected)
    assert type(copied) is type(expected)
    assert type(copied.on_invoke_tool) is type(expected.on_invoke_tool)
    assert copied.on_invoke_tool._function_tool is copied  # type: ignore[attr-defined]
    assert copied.__wrapped__ is tool.__wrapped__


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null"])
PARAMETER = st.recursive(
    st.fixed_dictionaries({"type": TYPES}, optional={"default": PLAIN, "enum": st.lists(PLAIN, max_size=3)}),
    lambda inner: (
        st.fixed_dictionaries({"type": st.just("array"), "items": inner})
        | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)})
        | st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(st.text(max_size=3), inner, max_size=3)}
        )
    ),
    max_leaves=6,
)
SCHEMAS = st.fixed_dictionaries(
    {
        "type": st.just("object"),
        "properties": st.dictionaries(st.text(min_size=1, max_size=5), PARAMETER, max_size=4),
    }
)


@given(schema=SCHEMAS, is_strict=st.booleans())
def test_the_schema_of_a_copy_equals_the_sdks(schema: dict[str, Any], is_strict: bool) -> None:
    tool = FunctionTool("t", "d", {"type": "object", "properties": {}}, forecast, is_strict)  # type: ignore[arg-type]
    tool.params_json_schema = schema  # as a user may, afterwards
    kept = copy.deepcopy(schema)
    assert repr(copy_function(tool).params_json_schema) == repr(copy.copy(tool).params_json_schema)
    assert tool.params_json_schema is schema
    assert schema == kept


def test_copies_do_not_share_a_strict_schema() -> None:
    tool = function_tool(forecast)
    first, second = copy_function(tool), copy_function(tool)
    first.params_json_schema["properties"]["city"]["description"] = "changed"
    assert first.params_json_schema != second.params_json_schema
    assert second.params_json_schema == tool.params_json_schema == copy_function(tool).params_json_schema


def test_equal_schemas_are_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = function_tool(forecast)
    copy_function(tool)

    def never(*_: Any) -> Any:
        raise AssertionError("it was known")

    monkeypatch.setattr(agents.strict_schema, "ensure_strict_json_schema", never)
    monkeypatch.setattr("agents.tool.ensure_strict_json_schema", never)
    assert copy_function(tool).params_json_schema == tool.params_json_schema
    assert copy_function(copy_function(tool)).params_json_schema == tool.params_json_schema


class Colour(str, enum.Enum):
    RED = "red"


def test_a_schema_that_is_not_plain_is_left_to_the_sdk() -> None:
    tool = function_tool(forecast)
    tool.params_json_schema["properties"]["city"]["default"] = Colour.RED
    copied, expected = copy_function(tool), copy.copy(tool)
    assert repr(copied.params_json_schema) == repr(expected.params_json_schema)


def test_a_schema_that_cannot_be_strict_is_refused_as_by_the_sdk() -> None:
    tool = function_tool(forecast)
    tool.params_json_schema["additionalProperties"] = True
    for _ in range(2):
        with pytest.raises(UserError, match="additionalProperties"):
            copy_function(tool)


def test_a_subclass_is_copied_by_its_own_method() -> None:
    class Own(FunctionTool):
        def __copy__(self) -> Own:
            copied: Own = super().__copy__()  # type: ignore[assignment]
            copied.description = "a copy"
            return copied

    tool = function_tool(forecast)
    own = Own(tool.name, tool.description, tool.params_json_schema, tool.on_invoke_tool)
    assert copy_function(own).description == "a copy"


def test_tools_that_the_sdk_refuses_are_refused() -> None:
    tool = function_tool(forecast)
    tool.timeout_seconds = -1.0
    with pytest.raises(ValueError, match="timeout_seconds"):
        copy_function(tool)


def test_a_subclass_of_str_is_left_to_the_sdk() -> None:
    tool = function_tool(forecast)
    tool.params_json_schema["properties"]["city"]["enum"] = list(np.array(["Oslo", "Rome"]))
    copied = copy_function(tool)
    assert json.loads(json.dumps(copied.params_json_schema))["properties"]["city"]["enum"] == ["Oslo", "Rome"]


def test_long_schemas_are_not_cached() -> None:
    tool = function_tool(forecast)
    tool.params_json_schema["properties"]["city"]["description"] = "long " * 9_999
    before = _strict_schema.cache_info().currsize
    assert copy_function(tool).params_json_schema == copy.copy(tool).params_json_schema
    assert _strict_schema.cache_info().currsize == before


def test_a_copy_can_use_earlier_fields_of_a_tool() -> None:
    tool = function_tool(forecast)
    fields = dict(vars(tool))
    tool.name, tool.needs_approval = "other", True
    assert fields_of(copy_function(tool, fields)) == {
        **fields_of(tool),
        "name": "forecast",
        "needs_approval": False,
    }
