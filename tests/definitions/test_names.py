"""When two names are one."""

from __future__ import annotations

import pytest

from kantan_agents.definitions import name_key


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
def test_case_and_separators_make_no_other_name(name: str) -> None:
    assert name_key(name) == "codereviewer"


@pytest.mark.parametrize(
    ("one", "other"), [("c", "c++"), ("c", "c#"), ("agent-1", "agent-2"), ("-", "_"), ("レビュー", "レビュ")]
)
def test_other_characters_do(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)


def test_a_name_that_is_no_slug_is_found_by_one() -> None:
    assert name_key("Python DevOps/CI-CD Expert") == name_key("python-devops-ci-cd-expert")
