"""What holds for every definition and every text."""

from __future__ import annotations

import yaml
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.definitions import AgentDefinition
from kantan_agents.definitions.fix import mended
from kantan_agents.definitions.frontmatter.keys import WRITTEN
from kantan_agents.errors import AgentFileError, InvalidDefinitionError
from tests.definitions.agent_texts import definitions, file_texts


def loaded(text: str | bytes) -> AgentDefinition | None:
    try:
        return AgentDefinition.loads(text)
    except (AgentFileError, InvalidDefinitionError):
        return None


@given(definitions)
def test_a_definition_written_and_read_is_the_same(definition: AgentDefinition) -> None:
    read = AgentDefinition.loads(definition.dump().encode())

    assert read == definition
    assert read.notes == ()


@given(definitions)
def test_other_yaml_readers_read_what_is_written_as_the_same(definition: AgentDefinition) -> None:
    front = definition.dump().split("\n---\n", 1)[0].removeprefix("---\n")

    read = yaml.safe_load(front)

    said = definition.to_dict()
    for field in ("name", "description", "model", "max_turns", "context", "hooks", "mcp_servers", "memory"):
        assert read.get(WRITTEN[field]) == said[field]
    assert {key: value for key, value in read.items() if key not in WRITTEN.values()} == said["extra"]


@given(st.binary(max_size=60) | st.binary(max_size=60).map(b"---\n".__add__) | file_texts.map(str.encode))
def test_bytes_either_load_or_give_an_error_of_ours(content: bytes) -> None:
    loaded(content)


@given(file_texts)
def test_a_file_read_and_written_says_the_same_and_keeps_its_prompt(text: str) -> None:
    definition = loaded(text)
    if definition is None:
        return

    written = definition.dump()

    assert AgentDefinition.loads(written) == definition
    assert written.endswith(definition.system_prompt)


@given(file_texts)
def test_a_mended_file_is_valid_and_says_the_same(text: str) -> None:
    definition = loaded(text)
    if definition is None:
        return

    result = mended(text)

    # Data that is broken inside is kept as text, and nobody can say what valid YAML it would be.
    is_clear = not any(note.message.endswith("; kept as text") for note in definition.repairs)
    assert (result is None) == (not (definition.is_repaired and is_clear))
    if result is not None:
        assert AgentDefinition.loads(result) == definition
        assert not AgentDefinition.loads(result).is_repaired
        assert result.endswith(definition.system_prompt)
        assert mended(result) is None


@given(definitions)
def test_valid_yaml_is_never_repaired(definition: AgentDefinition) -> None:
    assert not AgentDefinition.loads(definition.dump()).is_repaired
    assert mended(definition.dump()) is None
