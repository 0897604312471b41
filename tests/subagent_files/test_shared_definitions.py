"""What one caller does to a definition never reaches another, and a second load opens no file again."""

from __future__ import annotations

import copy
import json
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, AgentDefinition, AgentLoader
from kantan_agents.testing import ScriptedModel, assistant_message
from tests.subagent_files.agent_texts import definitions
from tests.subagent_files.agent_tree import agent_text, set_unique_time, write_text

FILE = """---
name: a
description: b
context: {seen: [1], limits: {rows: 5}}
mcpServers: [{local: {command: run}}]
hooks: {Stop: [x]}
team: {members: [me]}
tools: [Read]
---

P
"""

DICT_CHANGES: list[Any] = [
    lambda data: data.__setitem__("k", 1),
    lambda data: data.update(k=1),
    lambda data: data.setdefault("new", 1),
    lambda data: data.__ior__({"k": 1}),
    lambda data: data.clear(),
    lambda data: data.popitem(),
    lambda data: data.pop(next(iter(data), "k")),
    lambda data: data.__delitem__(next(iter(data), "k")),
]
LIST_CHANGES: list[Any] = [
    lambda data: data.append(1),
    lambda data: data.extend([1]),
    lambda data: data.insert(0, 1),
    lambda data: data.__iadd__([1]),
    lambda data: data.__imul__(2),
    lambda data: data.__setitem__(slice(None), [1]),
    lambda data: data.__delitem__(slice(None)),
    lambda data: data.pop(),
    lambda data: data.remove(data[0] if data else None),
    lambda data: data.clear(),
    lambda data: data.sort(key=str),
    lambda data: data.reverse(),
]


def containers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from containers(inner)


@given(definitions, st.data())
def test_no_change_by_one_caller_reaches_another(definition: AgentDefinition, data: st.DataObject) -> None:
    before = definition.dump()
    fields = (definition.context, definition.hooks, definition.mcp_servers, definition.extra)
    found = [container for field in fields for container in containers(field)]
    container = data.draw(st.sampled_from(found))
    change = data.draw(st.sampled_from(DICT_CHANGES if isinstance(container, dict) else LIST_CHANGES))
    with pytest.raises(TypeError, match="cannot be changed"):
        change(container)
    for copied in (definition.to_dict(), copy.deepcopy(definition.context), copy.deepcopy(definition.extra)):
        for part in containers(copied):
            part.clear()
    assert definition.dump() == before


def test_the_data_of_a_definition_is_read_as_ordinary_data() -> None:
    read = AgentDefinition.loads(FILE)
    assert read.context == {"seen": [1], "limits": {"rows": 5}}
    assert json.loads(json.dumps(read.context)) == read.context
    assert isinstance(read.context, dict)
    assert type(copy.copy(read.context)) is type(read.context | {}) is dict
    assert type(copy.copy(read.mcp_servers)) is type(read.mcp_servers[:]) is list


@given(definitions)
def test_a_copied_or_stored_definition_is_equal(definition: AgentDefinition) -> None:
    for copied in (
        copy.copy(definition),
        copy.deepcopy(definition),
        pickle.loads(pickle.dumps(definition)),
        attrs.evolve(definition),
    ):
        assert copied == definition
    stored = pickle.loads(pickle.dumps(definition))
    with pytest.raises(TypeError, match="cannot be changed"):
        stored.extra["k"] = 1


def test_a_definition_made_in_code_does_not_share_the_data_it_was_made_from() -> None:
    data: dict[str, Any] = {"seen": [1]}
    definition = AgentDefinition("a", "b", context=data, extra={"x": data})
    data["seen"].append(2)
    assert (definition.context, definition.extra) == ({"seen": [1]}, {"x": {"seen": [1]}})


async def test_each_run_gets_its_own_copy_of_the_context_of_a_file(tmp_path: Path) -> None:
    write_text(tmp_path / "a.md", FILE)
    loader = AgentLoader([tmp_path])
    for _ in range(2):
        model = ScriptedModel([[assistant_message("done")]])
        agent = Agent.from_definition(await loader.get_agent("a"), model=model)
        context = await agent.run_async("Go")
        assert context["seen"] == [1]
        context["seen"].append(2)
        context["limits"]["rows"] = 0
    catalog = await loader.load_agents()
    catalog.details("a")["tools"].append("Bash")
    catalog.details("a")["context"]["seen"].append(3)
    assert (catalog.get("a").tools, catalog.get("a").context["seen"]) == (("Read",), [1])


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Names of the subagent files that were opened, in order."""
    names: list[str] = []
    is_open = os.open

    def noted(path: Any, *rest: Any, **options: Any) -> int:
        directory, name = os.path.split(os.fsdecode(path))
        if directory == str(tmp_path):  # other threads, such as a recorder's, open other files
            names.append(name)
        return is_open(path, *rest, **options)

    monkeypatch.setattr(os, "open", noted)
    return names


@pytest.mark.usefixtures("_settled")
def test_a_second_load_of_many_unchanged_files_opens_none_of_them(tmp_path: Path, opened: list[str]) -> None:
    count = 4200
    for number in range(count):
        (tmp_path / f"{number}.md").write_text(agent_text(f"agent-{number}"))
        set_unique_time(tmp_path / f"{number}.md")
    set_unique_time(tmp_path)
    loader = AgentLoader([tmp_path])
    before = loader.load_agents_now()
    assert len(opened) == count
    after = loader.load_agents_now()
    loader.get_agent_now("agent-7")
    assert len(opened) == count
    assert all(one is other for one, other in zip(before, after, strict=True))


@pytest.mark.usefixtures("_settled")
def test_a_removed_file_is_not_kept(tmp_path: Path) -> None:
    for name in "ab":
        write_text(tmp_path / f"{name}.md", agent_text(name))
    loader = AgentLoader([tmp_path])
    loader.load_agents_now()
    (tmp_path / "b.md").unlink()
    set_unique_time(tmp_path)
    loader.load_agents_now()
    assert list(loader._files._entries) == [str(tmp_path / "a.md")]
