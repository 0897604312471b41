"""Every shape of file found in practice is read as intended, or gives an error with its position."""

from __future__ import annotations

from pathlib import Path

import pytest

from kantan_agents import AgentDefinition, AgentLoader
from kantan_agents.errors import AgentFileError, InvalidDefinitionError
from kantan_agents.subagent_files.fix import fixed_text
from tests.subagent_files.real_world_files import SAMPLES, write_samples

READABLE = [name for name, wild in SAMPLES.items() if wild.severity == "warning"]
UNREADABLE = [name for name, wild in SAMPLES.items() if wild.severity != "warning"]


@pytest.mark.parametrize("name", READABLE)
def test_a_file_is_read_as_its_author_meant_it(name: str) -> None:
    wild = SAMPLES[name]
    definition = AgentDefinition.loads(wild.content)
    assert definition.name == (wild.name or name)
    assert definition.description == wild.description
    assert definition.tools == wild.tools
    assert definition.system_prompt == wild.prompt
    lines = [note.line for note in definition.notes]
    assert lines[:1] == ([] if wild.line is None else [wild.line])


@pytest.mark.parametrize("name", READABLE)
def test_the_fixed_file_is_valid_and_has_the_same_content(name: str) -> None:
    text = SAMPLES[name].content.decode()
    definition = AgentDefinition.loads(text)
    fixed = fixed_text(text)
    assert (fixed is None) == (not definition.is_repaired)
    if fixed is not None:
        again = AgentDefinition.loads(fixed)
        assert again == definition
        assert not again.is_repaired
        assert fixed_text(fixed) is None


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_read_says_where_and_why(name: str, tmp_path: Path) -> None:
    wild = SAMPLES[name]
    path = tmp_path / "file.md"
    path.write_bytes(wild.content)
    with pytest.raises((AgentFileError, InvalidDefinitionError)) as caught:
        AgentDefinition.load(path)
    assert caught.value.data["line"] == wild.line
    assert f"{path}:{wild.line}: " in str(caught.value)


def test_a_folder_of_all_files_loads_the_valid_ones_and_lists_the_others(tmp_path: Path) -> None:
    folder = write_samples(tmp_path / "agents")
    catalog = AgentLoader([folder]).load_agents_now()
    assert {agent.name for agent in catalog} == {SAMPLES[name].name or name for name in READABLE}
    errors = {
        problem.path.stem for problem in catalog.problems if problem.severity == "error" and problem.path
    }
    assert errors == {name for name in UNREADABLE if SAMPLES[name].severity == "error"}
    only_warned = ("duplicate-keys", "another-case")
    assert len(catalog.repaired) == sum(
        SAMPLES[name].line is not None for name in READABLE if name not in only_warned
    )
