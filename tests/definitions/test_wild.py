"""Every shape that agent files have in the wild: read as a person would, or an error that says where."""

from __future__ import annotations

from pathlib import Path

import pytest

from kantan_agents.definitions import AgentDefinition, AgentLoader
from kantan_agents.definitions.fix import mended
from kantan_agents.errors import AgentFileError, InvalidDefinitionError
from tests.definitions.wild import WILD, write_wild

READABLE = [name for name, wild in WILD.items() if wild.severity != "error"]
UNREADABLE = [name for name, wild in WILD.items() if wild.severity == "error"]


@pytest.mark.parametrize("name", READABLE)
def test_a_file_is_read_as_a_person_would(name: str) -> None:
    wild = WILD[name]
    definition = AgentDefinition.loads(wild.content)
    assert definition.name == (wild.name or name)
    assert definition.description == wild.description
    assert definition.tools == wild.tools
    assert definition.system_prompt == wild.prompt
    lines = [note.line for note in definition.notes]
    assert lines[:1] == ([] if wild.line is None else [wild.line])


@pytest.mark.parametrize("name", READABLE)
def test_what_fix_makes_of_it_says_the_same_and_is_valid(name: str) -> None:
    text = WILD[name].content.decode()
    definition = AgentDefinition.loads(text)
    fixed = mended(text)
    assert (fixed is None) == (not definition.is_repaired)
    if fixed is not None:
        again = AgentDefinition.loads(fixed)
        assert again == definition
        assert not again.is_repaired
        assert mended(fixed) is None


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_read_says_where_and_why(name: str, tmp_path: Path) -> None:
    wild = WILD[name]
    path = tmp_path / "file.md"
    path.write_bytes(wild.content)
    with pytest.raises((AgentFileError, InvalidDefinitionError)) as caught:
        AgentDefinition.load(path)
    assert caught.value.data["line"] == wild.line
    assert f"{path}:{wild.line}: " in str(caught.value)


def test_a_folder_of_them_all_loads_what_can_be_loaded_and_lists_the_rest(tmp_path: Path) -> None:
    folder = write_wild(tmp_path / "agents")
    catalog = AgentLoader([folder]).load_agents_now()
    assert {agent.name for agent in catalog} == {WILD[name].name or name for name in READABLE}
    errors = {
        problem.path.stem for problem in catalog.problems if problem.severity == "error" and problem.path
    }
    assert errors == set(UNREADABLE)
    only_remarked = ("duplicate-keys", "another-case")
    assert len(catalog.repaired) == sum(
        WILD[name].line is not None for name in READABLE if name not in only_remarked
    )
