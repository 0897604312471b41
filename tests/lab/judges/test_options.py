"""Validation of the rules, options, templates and schemas of a ``StatusJudge``."""

from __future__ import annotations

import pickle
from typing import Any

import attrs
import pytest
from agents import AgentOutputSchema
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import JudgeTemplates, JudgmentError, StageAttempt, StatusJudge, StatusRule
from kantan_agents.errors import InvalidJudgeRulesError, InvalidOptionError
from kantan_agents.lab import ENGLISH
from kantan_agents.lab.judges.stages import Evaluation, Judgment
from kantan_agents.lab.judges.wording import Data, fenced, fill
from kantan_agents.testing import ScriptedModel


def judge(rules: Any = ("a", "b"), **options: Any) -> StatusJudge:
    return StatusJudge(rules, model=ScriptedModel([]), **options)


def test_the_output_schemas_match_the_specification() -> None:
    assert AgentOutputSchema(Judgment).json_schema() == {
        "type": "object",
        "properties": {
            "step": {"type": "integer", "description": "Matched rule number (1-based)"},
            "reason": {"type": "string", "description": "Brief justification"},
        },
        "required": ["step", "reason"],
        "additionalProperties": False,
    }
    assert AgentOutputSchema(Evaluation).json_schema() == {
        "type": "object",
        "properties": {"matched_index": {"type": "integer"}, "reason": {"type": "string"}},
        "required": ["matched_index", "reason"],
        "additionalProperties": False,
    }


def test_conditions_and_rules_may_be_mixed() -> None:
    rule = StatusRule("b", name="next")
    assert judge(["a", rule]).rules == (StatusRule("a"), rule)
    assert judge(iter(["a"])).rules == (StatusRule("a"),)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        rule.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ([], "at least one rule"),
        ("abc", "rules: must be a list, not 'abc'"),
        (None, "rules: must be a list, not None"),
        ({"a": 1}, "rules: must be a list"),
        (["a", " "], "rules[1]: must be a text or a StatusRule, not ' '"),
        (["a", 5, None], "rules[2]: must be a text or a StatusRule, not None"),
    ],
)
def test_invalid_rules_are_listed_with_their_positions(rules: Any, problem: str) -> None:
    with pytest.raises(InvalidJudgeRulesError) as caught:
        judge(rules)
    assert caught.value.code == "E45"
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "problem"), [(("", None), "condition"), (("a", 5), "name"), ((5, 5), "name")]
)
def test_an_invalid_rule_is_an_error_with_the_reason(rule: Any, problem: str) -> None:
    with pytest.raises(InvalidJudgeRulesError, match=f"{problem}: must be"):
        StatusRule(*rule)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("tag", "no tag"),
        ("language", "fr"),
        ("language", ["en"]),
        ("mode", "both"),
        ("mode", ["tag"]),
        ("name", " "),
        ("templates", "x"),
        ("middleware", "x"),
        ("instructions", "x"),
        ("output_type", int),
        ("output_dest", "x"),
        ("history", 3),
    ],
)
def test_an_invalid_option_is_an_error_that_names_it(option: str, value: Any) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        judge(**{option: value})
    assert caught.value.option == option


@pytest.mark.parametrize(
    ("field", "text", "problem"),
    [
        ("structured", "no table", "{{ conditions }}"),
        ("tagged", "{{ conditions }}", "{{ tags }}"),
        ("evaluation", "", "{{ conditions }}"),
        ("output", "{{ outputs }}", "{{ output }}"),
        ("output", None, "must be a str"),
    ],
)
def test_a_template_must_contain_its_markers(field: str, text: Any, problem: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        attrs.evolve(ENGLISH, **{field: text})
    assert caught.value.option == f"JudgeTemplates.{field}"
    assert problem in caught.value.reason


def test_templates_are_replaced_completely_or_in_part() -> None:
    whole = JudgeTemplates("s {{conditions}}", "t {{tags}}", "e {{conditions}}", "o {{output}}")
    part = attrs.evolve(ENGLISH, tagged="{{ tags }}")
    assert judge(templates=whole).mode == judge(templates=part).mode == "structured"


@given(st.text(alphabet="`a\n ", max_size=40))
def test_no_text_closes_its_fence(text: str) -> None:
    fence, inner, end = fenced(text).partition("\n")[0], fenced(text).split("\n")[1:-1], fenced(text)[-3:]
    assert set(fence) == {"`"}
    assert len(fence) >= 3
    assert end == "```"
    assert "\n".join(inner) == text
    assert fence not in text


@given(st.text(alphabet="{} tagsx$c.", max_size=40), st.text(alphabet="{} tagsx", max_size=20))
def test_inserted_values_are_data_and_nothing_else_changes(template: str, value: str) -> None:
    wording = fill(template, {"tags": value})
    templates = "".join(part for part in wording.parts if not isinstance(part, Data))
    assert wording.text.count("") >= len(templates)
    assert all(part.text == value for part in wording.parts if isinstance(part, Data))
    if "tags" not in template:
        assert wording.text == template


def test_the_error_keeps_its_attempts_when_pickled() -> None:
    error = JudgmentError(attempts=[StageAttempt("ai_judge", "i", None, "no {answer}")])
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.attempts) == (str(error), error.attempts)
    assert str(error).endswith("No rule was chosen at any stage: ai_judge: no {answer}")
