"""Files that decide what is executed or permitted: changed after a yes to exactly them, or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kantan_agents import Agent, toolkit
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing import ScriptedModel
from kantan_agents.toolkit import protected
from kantan_agents.toolkit.files.editing.changes import change_of
from kantan_agents.toolkit.protected import (
    PROTECTED,
    named_protected,
    names_protected,
    protect,
    why_protected,
)
from kantan_agents.traces import registry
from tests.toolkit.files.calling import Tools, snapshot

PROTECTED_PATHS = [
    *(".git/config", ".git/hooks/pre-commit", ".git/info/attributes", ".git", "sub/.git/config", "sub/.git"),
    *(".claude/agents/writer.md", ".claude/settings.json", ".kode/skills/a/SKILL.md", ".codex/config.toml"),
    *(".agents/a.md", "sub/.claude/agents/a.md", ".mcp.json", "sub/.mcp.json", "kantan-agents.toml"),
    *(".venv/bin/python", ".venv/lib/python3.11/site-packages/a.pth", "src/a.pth", "sitecustomize.py"),
    *("traces.sqlite3", "traces.sqlite3-wal", "traces.sqlite3.key", "conversations.sqlite3"),
    *(
        ".bashrc",
        ".zshrc",
        ".profile",
        ".envrc",
        "sub/.envrc",
        ".config/fish/config.fish",
        ".vscode/tasks.json",
    ),
    *(".npmrc", "node_modules/.bin/tsc", ".husky/pre-commit", ".gitmodules", ".ssh/config"),
    # What a file system may take for one of them.
    *(".GIT/config", ".Claude/agents/a.md", ".MCP.JSON", "git~1/config", ".git./config", ".g\u200cit/config"),
]
ORDINARY_PATHS = [
    *("src/a.py", "git/config", "docs/.gitignore", ".gitattributes", ".github/workflows/test.yml", "HEAD"),
    *("claude/agents/a.md", "environment/bin/python", "a.pth.txt", "config", ".config/settings.toml"),
    *("AGENTS.md", "CLAUDE.md", "objects/a", "lib/a.py", "traces.sqlite", "bashrc"),
]


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return {"tool": "Edit", "arguments": {"file_path": path, "old_string": old, "new_string": new}}


def write(path: str, content: str) -> dict[str, Any]:
    return {"tool": "Write", "arguments": {"file_path": path, "content": content}}


def results(context: Any) -> list[str]:
    return [str(item.output) for item in context["result"].new_items if item.type == "tool_call_output_item"]


async def test_they_are_not_written_without_a_person(tmp_path: Path) -> None:
    tools = Tools(tmp_path)
    for path in PROTECTED_PATHS:
        assert "[E202]" in await tools("Write", file_path=path, content="x"), path
        assert "[E202]" in await tools("Write", file_path=f"{tmp_path}/{path}", content="x"), path
    assert snapshot(tmp_path) == {}


async def test_other_files_are_written(tmp_path: Path) -> None:
    tools = Tools(tmp_path)
    for path in ORDINARY_PATHS:
        assert (await tools("Write", file_path=path, content="x")).startswith("Created"), path


async def test_they_are_not_edited_without_a_person(tmp_path: Path) -> None:
    config = tmp_path / ".git/config"
    config.parent.mkdir()
    config.write_text("[core]\n")
    tools, before = Tools(tmp_path), snapshot(tmp_path)
    change = {"old_string": "[core]", "new_string": "[core]\n\tfsmonitor = evil"}
    assert "[E202]" in await tools("Edit", file_path=".git/config", **change)
    assert "[E202]" in await tools("MultiEdit", file_path=".git/config", edits=[change])
    assert "[E202]" in await tools("Edit", file_path="a/../.git/config", **change)
    assert "[E202]" in await tools("Edit", file_path=".git/./config", **change)
    assert snapshot(tmp_path) == before


async def test_no_link_leads_to_one(tmp_path: Path) -> None:
    hooks = tmp_path / ".git/hooks"
    hooks.mkdir(parents=True)
    (hooks / "pre-commit").write_text("old\n")
    (tmp_path / "notes").symlink_to(".git/hooks")
    (tmp_path / "a.txt").symlink_to(".git/hooks/pre-commit")
    os.link(hooks / "pre-commit", tmp_path / "b.txt")
    tools = Tools(tmp_path)
    assert "links are not followed" in await tools("Write", file_path="notes/pre-commit", content="new\n")
    assert "links are not followed" in await tools("Write", file_path="a.txt", content="new\n")
    # A hard link is replaced, and its other name keeps the content.
    assert "Replaced" in await tools("Write", file_path="b.txt", content="new\n")
    assert (hooks / "pre-commit").read_text() == "old\n"


async def test_what_makes_a_folder_a_repository_or_an_environment_counts(tmp_path: Path) -> None:
    tools = Tools(tmp_path)
    assert "Created" in await tools("Write", file_path="bare/config", content="[core]\n")
    assert "Created" in await tools("Write", file_path="bare/objects/a", content="x")
    assert "Created" in await tools("Write", file_path="bare/refs/a", content="x")
    assert "[E202]" in await tools("Write", file_path="bare/HEAD", content="ref: refs/heads/main\n")
    (tmp_path / "bare/HEAD").touch()
    assert "[E202]" in await tools("Write", file_path="bare/config", content="[core]\n\tfsmonitor = x\n")
    (tmp_path / "tools/lib").mkdir(parents=True)
    (tmp_path / "tools/pyvenv.cfg").touch()
    assert "[E202]" in await tools("Write", file_path="tools/lib/os.py", content="x")
    # An environment in the root itself: the rest of the project is not in it.
    (tmp_path / "pyvenv.cfg").touch()
    assert "[E202]" in await tools("Write", file_path="bin/python", content="x")
    assert "Created" in await tools("Write", file_path="src/a.py", content="x")


def test_what_this_process_runs_and_uses_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = os.path.realpath(tmp_path)
    monkeypatch.setattr(protected, "executed_here", lambda: (f"{root}/python", root))
    monkeypatch.setattr(protected, "_also", {})
    assert why_protected(root, ("python", "lib", "os.py")) == protected.PYTHON
    assert why_protected(root, ("src", "a.py")) is None  # the root itself is not meant
    protect(tmp_path / "team" / "rules.json", "it decides")
    assert why_protected(root, ("team", "rules.json")) == "it decides"
    assert why_protected(root, ("team", "rules.json.txt")) is None

    class Recorder:
        path = tmp_path / "runs.db"

    monkeypatch.setattr(registry, "_recorders", {Recorder()})
    for name in ("runs.db", "runs.db-wal", "runs.db.key"):
        assert why_protected(root, (name,)) == protected.TRACES


async def test_commands_that_could_write_it_end_before_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []

    def end_writers(path: str) -> None:
        assert not Path(path).exists()
        ended.append(path)

    supervised = SimpleNamespace(end_writers=end_writers)
    monkeypatch.setitem(sys.modules, "kantan_agents.toolkit.shell.supervised", supervised)
    tools = Tools(tmp_path, approval=True)
    assert "Created" in await tools("Write", file_path=".mcp.json", content="{}")
    assert "Created" in await tools("Write", file_path="a.txt", content="x")
    assert ended == [f"{os.path.realpath(tmp_path)}/{name}" for name in (".mcp.json", "a.txt")]  # noqa: ASYNC240


def test_where_programs_and_the_users_settings_are_found_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = os.path.realpath(tmp_path)
    monkeypatch.setenv("PATH", f"{root}/tools{os.pathsep}.{os.pathsep}/usr/bin")
    monkeypatch.setenv("KANTAN_AGENTS_CONFIG_DIR", f"{root}/settings")
    assert why_protected(root, ("tools", "git")) == protected.COMMANDS
    assert why_protected(root, ("tools", "data", "git")) is None
    assert why_protected(root, ("settings", "trusted-mcp", "a.json")) == protected.SERVERS
    (tmp_path / "conda/conda-meta").mkdir(parents=True)
    assert why_protected(root, ("conda", "bin", "python")) == protected.PYTHON


def test_a_command_may_name_a_protected_path() -> None:
    for command in (
        "cat .git/config",
        "ls 'x/.claude'",
        "tar --file=.mcp.json",
        "grep a src:.venv/bin",
        "git add .GIT",
    ):
        assert names_protected(command), command
    for command in ("git status", "ls src", "cat .gitignore", "pytest tests/a.py::test_b"):
        assert not names_protected(command), command


def test_a_call_of_any_tool_may_name_a_protected_path() -> None:
    assert named_protected(["x", ["a", "sub/.mcp.json"]]) == ("sub/.mcp.json", protected.SERVERS)
    for values in (["see .git/config for it"], ["https://host/.git/config"], [3, None, ""], ["src/a.py"]):
        assert named_protected(values) is None, values


@pytest.mark.parametrize(
    "value",
    [
        *("a b/../.git/config", "x\n/../.mcp.json", "x://../.git/config", "https://../.git/config"),
        *("/home/u/My Project/.git/config", "file:///p/.git/config", ".git\\config", "%2egit/config"),
        *(".git%2fhooks%2Fx", ".git/%2e%2e/x", "a/" * 5000 + "../" * 5000 + ".git/x", "x/../.venv/../.GIT/a"),
        [[{"path": ".git/config"}]],
        {"files": {".git/config": "x"}},
    ],
)
def test_whatever_a_tool_takes_for_a_path_is_looked_at(value: Any) -> None:
    assert named_protected(["x", value]) is not None


def test_a_path_is_followed_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / ".claude" / "worktrees" / "one"
    (project / ".git").mkdir(parents=True)
    (project / "free").symlink_to(".git")
    (project / "free.txt").write_text("x")
    monkeypatch.chdir(project)
    monkeypatch.setitem(protected._also, str(project / "my-rules.json"), protected.AGENTS)
    assert named_protected(["free/config"]) == ("free/config", protected.GIT)
    assert named_protected(["src/../my-rules.json"]) == ("src/../my-rules.json", protected.AGENTS)
    for values in (
        ["free.txt", "", ".", "a text", "x" * 5000, "\0", "\ud800"],
        ["\n".join(["see .git/x"] * 2)],
    ):
        assert named_protected(values) is None, values


async def test_a_root_inside_of_a_repository_is_part_of_it(tmp_path: Path) -> None:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    assert "[E202]" in await Tools(tmp_path / ".git/hooks")("Write", file_path="pre-commit", content="x")


async def test_the_option_says_what_happens_with_them(tmp_path: Path) -> None:
    allowed = Tools(tmp_path, protected="allow")
    assert "Created" in await allowed("Write", file_path=".mcp.json", content="{}")
    for protected_ in ("ask", "refuse", "allow"):
        for approval in (True, False):
            given = {
                tool.name: tool
                for tool in toolkit(tmp_path, write=True, approval=approval, protected=protected_)
            }
            ask: Any = given["Write"].needs_approval
            for path, is_protected in ((".mcp.json", True), ("a.txt", False)):
                asks = await ask(None, {"file_path": path}, "1") if callable(ask) else ask
                expected = approval if not is_protected or protected_ == "allow" else protected_ == "ask"
                assert asks is expected, (protected_, approval, path)
    with pytest.raises(InvalidOptionError, match="protected"):
        toolkit(tmp_path, protected="yes")  # type: ignore[arg-type]


async def test_an_approval_of_every_call_does_not_cover_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    calls = [write("a.txt", "two\n"), write("b.txt", "three\n"), write(".mcp.json", "{}"), "Done."]
    agent = Agent("a", "Work.", model=ScriptedModel(calls), tools=toolkit(tmp_path, write=True))
    context = await agent.run_async("Go.", {})
    state = context["result"].to_state()
    state.approve(context["result"].interruptions[0], always_approve=True)
    context = await agent.run_async(state, context)
    first, second, third = results(context)
    assert first.startswith("Replaced") and second.startswith("Created")
    assert "[E202]" in third and "approved by itself" in third
    assert not (tmp_path / ".mcp.json").exists()


async def test_an_approval_of_the_call_covers_it(tmp_path: Path) -> None:
    agent = Agent(
        "a",
        "Work.",
        model=ScriptedModel([write(".mcp.json", "{}"), "Done."]),
        tools=toolkit(tmp_path, write=True, approval=False, protected="ask"),
    )
    context = await agent.run_async("Go.", {})
    state = context["result"].to_state()
    state.approve(context["result"].interruptions[0])
    assert results(await agent.run_async(state, context))[0].startswith("Created .mcp.json")


@pytest.mark.parametrize(
    "call", [write("a.txt", "new\n"), edit("a.txt", "one", "1"), write("b.txt", "new\n")]
)
async def test_what_was_shown_is_what_is_changed(tmp_path: Path, call: dict[str, Any]) -> None:
    path = tmp_path / call["arguments"]["file_path"]
    (tmp_path / "a.txt").write_text("one\n")
    agent = Agent("a", "Work.", model=ScriptedModel([call, "Done."]), tools=toolkit(tmp_path, write=True))
    context = await agent.run_async("Go.", {})
    path.write_text("one, and what a person has written since\n")
    state = context["result"].to_state()
    state.approve(context["result"].interruptions[0])
    assert "[E163]" in results(await agent.run_async(state, context))[0]
    assert path.read_text() == "one, and what a person has written since\n"


async def test_two_approved_changes_of_one_file_are_both_made(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\n")
    calls = [[edit("a.txt", "one", "1"), edit("a.txt", "two", "2")], "Done."]
    agent = Agent("a", "Work.", model=ScriptedModel(calls), tools=toolkit(tmp_path, write=True))
    context = await agent.run_async("Go.", {})
    state = context["result"].to_state()
    for waiting in context["result"].interruptions:
        state.approve(waiting)
    assert not any("[E163]" in result for result in results(await agent.run_async(state, context)))
    assert (tmp_path / "a.txt").read_text() == "1 2\n"


async def test_a_change_is_known_before_it_is_made(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\r\ntwo\r\n")
    (tmp_path / "b.bin").write_bytes(b"\0\1")
    tools = Tools(tmp_path).tools

    def change(name: str, **arguments: Any) -> Any:
        return change_of(tools[name], arguments)

    edited = change("Edit", file_path="a.txt", old_string="one", new_string="1")
    assert (edited.path, edited.before, edited.after) == ("a.txt", "one\ntwo\n", "1\ntwo\n")
    steps = [{"old_string": "one", "new_string": "1"}, {"old_string": "1", "new_string": "2"}]
    assert change("MultiEdit", file_path="a.txt", edits=steps).after == "2\ntwo\n"
    assert change("Write", file_path="new/c.txt", content="x").before is None
    assert change("Write", file_path=".mcp.json", content="x").protected == protected.SERVERS
    assert change("Write", file_path="b.bin", content="x").before == "[2 bytes, which are not shown]\n"
    assert "does not occur" in change("Edit", file_path="a.txt", old_string="three", new_string="").problem
    assert change("Edit", file_path="a.txt").problem is not None
    assert change("Write", file_path="../a.txt", content="x") is None
    assert change("Read", file_path="a.txt") is None
    assert (tmp_path / "a.txt").read_bytes() == b"one\r\ntwo\r\n"


def test_each_name_of_the_table_says_why() -> None:
    assert len({one.pattern for one in PROTECTED}) == len(PROTECTED)
    assert all(one.reason and one.pattern == one.pattern.lower() for one in PROTECTED)
