"""Search by words: which agents match, and in which order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import AgentDefinition
from kantan_agents.subagent_files.loading.agents import SearchIndex

AGENTS = {
    "code-review": "Looks at pull requests.",
    "code-reviewer": "Judges style.",
    "strict-code-reviewer": "Judges more.",
    "review-of-code": "Judges it too.",
    "reviewer": "Reads code and prose.",
    "linter": "Does what a code review does, but faster.",
    "critic": "Wants to review every line of your code.",
    "painter": "Paints.",
    "straße": "\uff37\uff49\uff44\uff45 \ufb01gures, café.",
}


def searched(text: str) -> list[str]:
    agents = [AgentDefinition(name=name, description=words) for name, words in AGENTS.items()]
    return [agent.name for agent in SearchIndex.of(agents).search(text)]


def test_better_matches_come_first() -> None:
    assert searched("code review") == [
        "code-review",
        "code-reviewer",
        "strict-code-reviewer",
        "review-of-code",
        "reviewer",
        "linter",
        "critic",
    ]


def test_equal_matches_keep_their_order() -> None:
    assert searched("judges") == ["code-reviewer", "strict-code-reviewer", "review-of-code"]


def test_every_word_must_occur() -> None:
    assert searched("code paints") == []
    assert searched("reviewer prose") == ["reviewer"]


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_a_text_without_words_finds_all(text: str) -> None:
    assert searched(text) == list(AGENTS)


@pytest.mark.parametrize("text", ["STRASSE", "wide figures", "CAFE\u0301", "\uff33trasse"])
def test_case_and_unicode_normalization_do_not_matter(text: str) -> None:
    assert searched(text) == ["straße"]


def test_separators_in_the_text_do_not_matter_for_names() -> None:
    assert searched("Code_Reviewer")[0] == "code-reviewer"


texts = st.text(min_size=1, max_size=12).filter(str.strip)


@given(name=texts, description=texts)
def test_an_agent_is_found_by_its_name_and_by_each_word_of_its_description(
    name: str, description: str
) -> None:
    agent = AgentDefinition(name=name, description=description)
    index = SearchIndex.of([agent])
    for text in (agent.name, *description.split()):
        assert index.search(text) == (agent,)


@given(query=st.text(max_size=12))
def test_any_text_can_be_searched_for(query: str) -> None:
    assert set(searched(query)) <= set(AGENTS)
