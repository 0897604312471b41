"""The catalog of loaded agents (spec subagents, "Agent 元数据")."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kantan_agents.errors import AgentNotFoundError
from kantan_agents.subagent_files import AgentCatalog, AgentDefinition, AgentLoader, Problem, ShadowedAgent
from tests.subagent_files.agent_tree import write, write_text
from tests.subagent_files.conftest import Places

BUILTIN = AgentDefinition(name="built-in", description="Comes along.", tools=("Read",))


@pytest.fixture
def catalog(places: Places) -> AgentCatalog:
    project, user = places.project / ".claude/agents", places.home / ".kode/agents"
    write_text(
        project / "Reviewer.md",
        "---\nname: Reviewer\ndescription: Reviews code.\ntools: Read, Grep\nmodel: opus\n---\n\nReview.\n",
    )
    write_text(project / "broken.md", "---\nname: broken\n---\n")
    write_text(project / "bent.md", "---\nname: bent\ndescription: Use it when: asked.\n---\n\nBend.\n")
    write(user / "reviewer.md", "reviewer", "Another.")
    write(user / "architect.md", "architect", "Plan.", "Plans.")
    return places.loader(builtin=[BUILTIN]).load_agents_now()


def test_scenario_the_list_has_all_agents_with_names_and_descriptions(catalog: AgentCatalog) -> None:
    assert [(agent.name, agent.description) for agent in catalog] == [
        ("architect", "Plans."),
        ("bent", "Use it when: asked."),
        ("built-in", "Comes along."),
        ("Reviewer", "Reviews code."),
    ]
    assert len(catalog) == 4
    assert catalog.names() == ("architect", "bent", "built-in", "Reviewer")


def test_scenario_details_have_all_fields_and_the_allowed_tools(
    catalog: AgentCatalog, places: Places
) -> None:
    details = catalog.details("reviewer")
    path = str(places.project / ".claude/agents/Reviewer.md")
    expected = {
        "name": "Reviewer",
        "description": "Reviews code.",
        "tools": ["Read", "Grep"],
        "model": "opus",
    }
    assert {**details, **expected, "path": path, "scope": "project", "repairs": []} == details
    assert details["system_prompt"] == "Review.\n"
    assert json.loads(json.dumps(details)) == details


def test_details_of_an_agent_with_all_tools_have_a_star(catalog: AgentCatalog) -> None:
    assert catalog.details("architect")["tools"] == "*"


def test_details_of_a_repaired_file_list_the_repairs(catalog: AgentCatalog, places: Places) -> None:
    (repair,) = catalog.details("bent")["repairs"]
    assert repair.startswith(f"{places.project}/.claude/agents/bent.md:3: ")


def test_details_of_a_built_in_agent_have_no_path(catalog: AgentCatalog) -> None:
    details = catalog.details("built-in")
    assert (details["path"], details["scope"], details["tools"]) == (None, "builtin", ["Read"])


def test_scenario_search_finds_by_name_or_description(catalog: AgentCatalog) -> None:
    assert [agent.name for agent in catalog.search("review")] == ["Reviewer"]
    assert [agent.name for agent in catalog.search("PLANS")] == ["architect"]
    assert catalog.search("nothing like it") == ()


def test_problems_of_all_files_are_sorted_by_path_and_line(catalog: AgentCatalog, places: Places) -> None:
    folder = places.project / ".claude/agents"
    found = [(problem.path, problem.line, problem.severity) for problem in catalog.problems]
    assert found == [(folder / "bent.md", 3, "warning"), (folder / "broken.md", 1, "error")]


def test_a_file_without_a_prompt_is_loaded_with_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path / "mute.md", "mute", " \n\n")
    write(tmp_path / "sound.md", "sound")
    catalog = AgentLoader([tmp_path], builtin=[BUILTIN]).load_agents_now()
    (problem,) = catalog.problems
    assert str(problem) == f"{path}:1: has no prompt: it cannot be run"
    assert (problem.severity, problem.is_repair, catalog.get("mute").path) == ("warning", False, path)


def test_shadowed_and_repaired_agents_are_listed(catalog: AgentCatalog, places: Places) -> None:
    hidden, used = places.home / ".kode/agents/reviewer.md", places.project / ".claude/agents/Reviewer.md"
    assert catalog.shadowed == (ShadowedAgent("reviewer", hidden, used),)
    assert [agent.name for agent in catalog.repaired] == ["bent"]


def test_each_agent_has_its_scope(catalog: AgentCatalog) -> None:
    scopes = {agent.name: catalog.scope_of(agent) for agent in catalog}
    assert scopes == {"architect": "user", "bent": "project", "built-in": "builtin", "Reviewer": "project"}


def test_an_agent_from_a_given_directory_has_the_scope_given(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "a")
    assert AgentLoader([tmp_path]).load_agents_now().details("a")["scope"] == "given"


def test_names_match_regardless_of_case_and_separators(catalog: AgentCatalog) -> None:
    assert catalog.get("BUILT IN") is BUILTIN
    found = [name for name in ("REVIEWER", "critic") if catalog.__contains__(name)]
    assert found == ["REVIEWER"]


def test_a_definition_is_in_the_catalog_if_it_is_the_one_used(catalog: AgentCatalog) -> None:
    assert catalog[0] in catalog
    assert AgentDefinition(name="Reviewer", description="Another.") not in catalog
    assert AgentDefinition(name="nobody", description="Nobody.") not in catalog
    assert not catalog.__contains__(5)


def test_a_catalog_is_a_sequence(catalog: AgentCatalog) -> None:
    assert (catalog[-1], catalog[1:3]) == (catalog.get("Reviewer"), tuple(catalog)[1:3])
    assert catalog.index(BUILTIN) == 2
    assert list(reversed(catalog)) == list(catalog)[::-1]


@pytest.mark.parametrize("ask", ["get", "details"])
def test_an_unknown_name_is_an_error_that_lists_the_available_names(catalog: AgentCatalog, ask: str) -> None:
    with pytest.raises(AgentNotFoundError) as caught:
        getattr(catalog, ask)("reviewr")
    assert caught.value.available == ("Reviewer", "architect", "bent", "built-in")


def test_long_names_are_shortened_in_the_message_of_the_error(tmp_path: Path) -> None:
    write(tmp_path / "long.md", "n" * 500)
    with pytest.raises(AgentNotFoundError) as caught:
        AgentLoader([tmp_path]).get_agent_now("other")
    assert str(caught.value).endswith(f"other (available: {'n' * 57}...)")
    assert caught.value.available == ("n" * 500,)


def test_the_scope_of_an_unknown_agent_is_an_error(catalog: AgentCatalog) -> None:
    with pytest.raises(AgentNotFoundError):
        catalog.scope_of(AgentDefinition(name="nobody", description="Nobody."))


def test_the_repr_counts(catalog: AgentCatalog) -> None:
    assert repr(catalog) == "AgentCatalog(4 agents, 1 errors, 1 shadowed)"
    assert isinstance(catalog.problems[0], Problem)
