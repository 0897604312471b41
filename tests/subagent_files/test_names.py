"""When two agent names are the same."""

from __future__ import annotations

import pytest

from kantan_agents.subagent_files import name_key


@pytest.mark.parametrize(
    "name",
    [
        "code-reviewer",
        "Code Reviewer",
        "code_reviewer",
        "CodeReviewer",
        "code\u2013reviewer",
        "\uff23\uff2f\uff24\uff25\uff0dreviewer",
    ],
)
def test_case_and_separators_do_not_change_a_name(name: str) -> None:
    assert name_key(name) == "codereviewer"


@pytest.mark.parametrize(
    ("one", "other"), [("c", "c++"), ("c", "c#"), ("agent-1", "agent-2"), ("-", "_"), ("レビュー", "レビュ")]
)
def test_other_characters_change_a_name(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)


def test_a_name_with_spaces_equals_its_slug() -> None:
    assert name_key("Python DevOps/CI-CD Expert") == name_key("python-devops-ci-cd-expert")
