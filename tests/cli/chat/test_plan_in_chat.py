"""``/plan`` and ``--plan``, at a terminal and in a pipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kantan_agents.testing import OfflineServer, ScriptedToolCall
from tests.cli.chat.terminal import Terminal

FILES = ("--tools", ".", "--write")
WRITER = """---
name: writer
description: Writes.
model: gpt-6.1-terra
tools: Write, ExitPlanMode
---
Write.
"""
QUESTION = "[y]es, yes but ask [e]ach time, [n]o:"


def write(path: str) -> ScriptedToolCall:
    return ScriptedToolCall("Write", {"file_path": path, "content": "new\n"})


def propose(*permissions: str) -> ScriptedToolCall:
    return ScriptedToolCall("ExitPlanMode", {"plan": "Write it.", "permissions": list(permissions)})


def at(terminal: Terminal, prompt: str) -> None:
    terminal.wait_until(lambda: terminal.shown.rstrip().rpartition("\n")[2].strip() == prompt, prompt)


def test_a_person_sees_the_mode_and_agrees_to_a_plan(chat: Any, folder: Path) -> None:
    replies = [write("a.md"), propose("Write(*.md)"), write("b.md"), "Written.", "A summary."]
    with OfflineServer(replies) as server:
        terminal = chat(server, *FILES)
        terminal.enter("/plan")
        at(terminal, "plan>")
        assert "Plan mode: agents only read, until you agree to a plan." in terminal.shown
        shown = terminal.enter("Write.", until=QUESTION)
        assert "! Write refused: plan mode" in shown
        assert "| Write it." in shown
        assert "Write(*.md): create or overwrite every file that matches *.md" in shown
        assert list(folder.iterdir()) == []
        terminal.ask("y", "Written.")
        assert [one.name for one in folder.iterdir()] == ["b.md"]
        terminal.enter("/plan on", until="it is /plan or /plan off, not 'on'")
        terminal.enter("/plan")
        at(terminal, "plan>")
        terminal.enter("/compact", until="A summary.")
        at(terminal, "plan>")
        assert not server.requests[-1].body.get("tools")
        terminal.ask("/plan off", "Plan mode is off.")


def test_what_was_agreed_to_ends_with_the_conversation(chat: Any, folder: Path) -> None:
    replies = [propose("Write(*.md)"), write("a.md"), "Written.", write("b.md"), "Over."]
    with OfflineServer(replies) as server:
        terminal = chat(server, *FILES)
        terminal.enter("/plan")
        at(terminal, "plan>")
        terminal.enter("Write.", until=QUESTION)
        terminal.ask("y", "Written.")
        terminal.ask("/new", "A new conversation.")
        terminal.enter("Write again.", until="It creates b.md:")
        assert [one.name for one in folder.iterdir()] == ["a.md"]


def test_a_closed_terminal_agrees_to_nothing(chat: Any, folder: Path) -> None:
    with OfflineServer([propose("Write(**)"), "Never."]) as server:
        terminal = chat(server, *FILES)
        terminal.enter("/plan")
        at(terminal, "plan>")
        terminal.enter("Write.", until=QUESTION)
        terminal.hang_up()
        assert terminal.wait_for_end() == 129
        assert len(server.requests) == 1


def test_in_a_pipe_the_plan_is_the_answer(lines: Any, folder: Path) -> None:
    (folder / "writer.md").write_text(WRITER)
    replies = [[write("a.md"), propose("Write(*.md)")], "Hello."]
    options = (*FILES, "--agent", "writer.md", "--plan", "--yes", "Write", "--no-save")
    with OfflineServer(replies) as server:
        ended = lines(server, b"/plan off\nHello\n", *options)
    assert ended.returncode == 0
    assert "! Write refused: plan mode" in ended.stderr
    assert ended.stdout == "Write it.\n\nThe plan asks for:\n- Write(*.md)\nHello.\n"
    assert "the plan mode of kantan-agents chat gives ExitPlanMode" in ended.stderr
    assert not (folder / "a.md").exists()


def test_a_wrong_tool_of_the_plan_is_an_error(lines: Any) -> None:
    with OfflineServer([]) as server:
        ended = lines(server, b"", "--plan-tool", "Bash(git *)")
    assert ended.returncode == 2
    assert "[E75] Invalid option --plan-tool" in ended.stderr
