"""With ``read_first``, a file is changed only as it was read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kantan_agents import Agent, toolkit
from kantan_agents.testing import ScriptedModel
from tests.toolkit.files.calling import Tools
from tests.toolkit.files.test_protected import results, write

ONE = {"old_string": "one", "new_string": "1"}


async def test_a_file_is_changed_only_after_it_was_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    tools = Tools(tmp_path, read_first=True)
    for name, arguments in (("Write", {"content": "x"}), ("Edit", ONE), ("MultiEdit", {"edits": [ONE]})):
        refused = await tools(name, file_path="a.txt", **arguments)
        assert "[E162]" in refused and "read it first" in refused
    assert (tmp_path / "a.txt").read_text() == "one\n"
    await tools("Read", file_path="a.txt")
    assert "Replaced" in await tools("Edit", file_path="a.txt", **ONE)
    assert "Replaced" in await tools("Write", file_path="a.txt", content="two\n")  # it is known by now


async def test_a_new_file_needs_no_reading(tmp_path: Path) -> None:
    tools = Tools(tmp_path, read_first=True)
    assert "Created" in await tools("Write", file_path="a/b.txt", content="one\n")
    assert "Replaced" in await tools("Edit", file_path="a/b.txt", **ONE)


async def test_what_has_changed_since_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    tools = Tools(tmp_path, read_first=True)
    await tools("Read", file_path="a.txt")
    file.write_text("one, and more\n")
    assert "[E163]" in await tools("Write", file_path="a.txt", content="x")
    assert "[E163]" in await tools("Edit", file_path="a.txt", **ONE)
    assert file.read_text() == "one, and more\n"
    await tools("Read", file_path="a.txt")
    assert "Replaced" in await tools("Edit", file_path="a.txt", **ONE)


async def test_other_toolkits_are_as_before(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    assert "Replaced" in await Tools(tmp_path)("Write", file_path="a.txt", content="x")


async def test_nobody_is_asked_about_a_call_that_is_refused_and_it_stays_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    read: dict[str, Any] = {"tool": "Read", "arguments": {"file_path": "a.txt"}}
    tools = {tool.name: tool for tool in toolkit(tmp_path, write=True, read_first=True)}
    calls = [write("a.txt", "x"), read, write("a.txt", "y"), "Done."]
    agent = Agent("a", "Work.", model=ScriptedModel(calls), tools=[*tools.values()])
    context = await agent.run_async("Go.", {})
    assert "[E162]" in results(context)[0]
    (waiting,) = context["result"].interruptions
    assert '"y"' in waiting.arguments
    # A reading between the question that was left out and the call changes nothing.
    (tmp_path / "b.txt").write_text("one\n")
    ask: Any = tools["Write"].needs_approval
    assert not await ask(None, {"file_path": "b.txt", "content": "x"}, "call")
    given = Tools(tmp_path)
    given.tools = tools
    await given("Read", file_path="b.txt")
    assert "[E163]" in await given("Write", file_path="b.txt", content="x")
    assert (tmp_path / "b.txt").read_text() == "one\n"
