from __future__ import annotations

import pickle
from typing import Any

import pytest

from kantan_agents import errors
from kantan_agents.errors import KantanAgentsError

SPECIFIED = [
    (errors.InstructionsRequiredError(), "[kantan-agents][E1] instructions is required"),
    (errors.EmptyPromptTextError(), "[kantan-agents][E2] Prompt.text must not be empty"),
    (
        errors.EmptyPromptNameError(),
        "[kantan-agents][E3] Prompt.name and Prompt.version must not be empty",
    ),
    (errors.ToolNameRequiredError(tool=1), "[kantan-agents][E4] Tool must define name"),
    (errors.ContextTypeError(got="list"), "[kantan-agents][E5] Context must be a dict"),
    (errors.HistoryTypeError(got="str"), "[kantan-agents][E6] Context history must be a list"),
    (
        errors.ToolProviderInterfaceError(provider="shop", distribution="shop-tools 1.0"),
        "[kantan-agents][E7] Tool provider must implement list_tools and get_tool_rules",
    ),
    (errors.ToolNotAllowedError(tool_name="rm"), "[kantan-agents][E8] Tool is not allowed: rm"),
    (errors.UnknownToolRulesModeError(mode="x"), "[kantan-agents][E9] Unknown ToolRulesMode: x"),
    (
        errors.ToolInputError(tool_name="t", reason="they are not a JSON object"),
        "[kantan-agents][E10] Tool input must be a JSON object",
    ),
    *(
        (
            errors.PARAMETER_ERRORS[keyword](tool_name="search", param_name="query", limit=3),
            f"[kantan-agents][{code}] Tool parameter {keyword} mismatch: search.query",
        )
        for code, keyword in (
            ("E11", "type"),
            ("E12", "enum"),
            ("E13", "minLength"),
            ("E14", "maxLength"),
            ("E15", "pattern"),
            ("E16", "minimum"),
            ("E17", "maximum"),
        )
    ),
    (errors.ToolRulesTypeError(got="str"), "[kantan-agents][E18] Tool rules must be a dict"),
    (errors.ModelNotFoundError(model="x"), "[kantan-agents][E19] Model not found: x"),
]

CLASSES = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, KantanAgentsError) and hasattr(value, "code")
]


@pytest.mark.parametrize(("error", "message"), SPECIFIED, ids=lambda v: getattr(v, "code", ""))
def test_the_message_is_exactly_that_of_the_specification(error: Any, message: Any) -> None:
    assert str(error) == message
    assert isinstance(error, ValueError)


def test_each_code_belongs_to_one_class() -> None:
    codes = [cls.code for cls in CLASSES]
    assert len(codes) == len(set(codes))


def test_data_are_attributes_and_survive_pickling() -> None:
    error = errors.InvalidToolRulesError(problems=["allow: wrong", "x: unknown"])
    assert error.problems == ("allow: wrong", "x: unknown")
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), str(copied), copied.problems) == (type(error), str(error), error.problems)


def test_braces_in_the_data_are_not_a_template() -> None:
    assert str(errors.ModelNotFoundError(model="{x} {0}")).endswith("Model not found: {x} {0}")
