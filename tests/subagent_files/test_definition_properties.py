"""Properties of every definition and of every text of a file."""

from __future__ import annotations

import yaml
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import AgentDefinition
from kantan_agents.errors import AgentFileError, InvalidDefinitionError
from kantan_agents.subagent_files.fix import fixed_text
from kantan_agents.subagent_files.frontmatter.keys import KEY_OF
from tests.subagent_files.agent_texts import definitions, file_texts


def loaded(text: str | bytes) -> AgentDefinition | None:
    try:
        return AgentDefinition.loads(text)
    except (AgentFileError, InvalidDefinitionError):
        return None


@given(definitions)
def test_a_definition_survives_a_round_trip(definition: AgentDefinition) -> None:
    read = AgentDefinition.loads(definition.dump().encode())

    assert read == definition
    assert read.notes == ()


@given(definitions)
def test_other_yaml_parsers_read_the_dump_the_same_way(definition: AgentDefinition) -> None:
    front = definition.dump().split("\n---\n", 1)[0].removeprefix("---\n")

    read = yaml.safe_load(front)

    said = definition.to_dict()
    for field in ("name", "description", "model", "max_turns", "context", "hooks", "mcp_servers", "memory"):
        assert read.get(KEY_OF[field]) == said[field]
    assert {key: value for key, value in read.items() if key not in KEY_OF.values()} == said["extra"]


@given(st.binary(max_size=60) | st.binary(max_size=60).map(b"---\n".__add__) | file_texts.map(str.encode))
def test_any_bytes_load_or_raise_a_documented_error(content: bytes) -> None:
    loaded(content)


@given(file_texts)
def test_dumping_a_loaded_file_keeps_content_and_prompt(text: str) -> None:
    definition = loaded(text)
    if definition is None:
        return

    written = definition.dump()

    assert AgentDefinition.loads(written) == definition
    assert written.endswith(definition.system_prompt)


@given(file_texts)
def test_a_fixed_file_is_valid_and_has_the_same_content(text: str) -> None:
    definition = loaded(text)
    if definition is None:
        return

    result = fixed_text(text)

    # A data field with invalid content is kept as text, and its meaning as YAML is unknown.
    is_fixable = not any(note.message.endswith("; kept as text") for note in definition.repairs)
    assert (result is None) == (not (definition.is_repaired and is_fixable))
    if result is not None:
        assert AgentDefinition.loads(result) == definition
        assert not AgentDefinition.loads(result).is_repaired
        assert result.endswith(definition.system_prompt)
        assert fixed_text(result) is None


@given(definitions)
def test_valid_yaml_is_never_repaired(definition: AgentDefinition) -> None:
    assert not AgentDefinition.loads(definition.dump()).is_repaired
    assert fixed_text(definition.dump()) is None
