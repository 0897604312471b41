"""The question about a change of a file: all of it can be seen before it is answered."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console

from kantan_agents.cli.chat.ask_approval import AskAtTerminal
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.terminal.approvals import AskedCall
from kantan_agents.cli.terminal.standing_approvals import StandingApproval
from kantan_agents.middleware import PendingCall
from kantan_agents.toolkit.files.editing.changes import FileChange

ALWAYS = StandingApproval("a", "Write", "folder", "docs", "/work")


class Answers:
    """Gives what would be typed, and notes the questions."""

    def __init__(self, *typed: str) -> None:
        self.typed = list(typed)
        self.questions: list[str] = []

    async def ask(self, question: str) -> str:
        self.questions.append(question)
        return self.typed.pop(0)


async def asked(change: FileChange, *typed: str, protected: Any = None, always: Any = ALWAYS) -> Any:
    """Ask; return the decision, what was shown, and the questions."""
    output, answers = StringIO(), Answers(*typed)
    editor: Any = answers
    ask = AskAtTerminal(editor, Screen(Console(file=output, width=100)))
    answer = await ask(AskedCall(PendingCall("1", "Write", "{}", "a"), change, protected, always))
    return answer and answer.decision, output.getvalue(), answers.questions


async def test_the_rest_of_a_long_change_is_shown_when_it_is_asked_for() -> None:
    text = "".join(f"line {number}\n" for number in range(1000))
    decision, shown, questions = await asked(FileChange("docs/a.md", None, None, text), "s", "y")
    assert decision == "yes" and len(questions) == 2
    before, _, after = shown.partition("... and 800 more lines: type s to see them")
    assert "+line 199\n" in before and "+line 200\n" not in before and "+line 999\n" in after


async def test_a_change_without_a_difference_and_one_that_fails_are_shown_too() -> None:
    _, shown, _ = await asked(FileChange("docs/a.md", None, "x\n", "x\n"), "y")
    assert "It changes docs/a.md:\n(nothing: the text is the same)\n" in shown
    _, shown, _ = await asked(FileChange("docs/a.md", None, problem="it does not occur"), "y")
    assert "It changes" not in shown and "{}" in shown


async def test_a_name_of_a_file_cannot_change_what_is_seen() -> None:
    _, shown, _ = await asked(FileChange("docs/\u202ea\u200b.md", None, None, "x"), "y")
    assert "docs/[U+202E]a[U+200B].md" in shown


async def test_always_is_no_answer_about_a_protected_file() -> None:
    protected = (".mcp.json", "it decides")
    change = FileChange(".mcp.json", "it decides", None, "x")
    decision, shown, questions = await asked(change, "a", "s", "y", protected=protected, always=None)
    assert decision == "yes" and questions == ["[y]es, [n]o: "] * 3
    assert ".mcp.json is protected: it decides." in shown and "always" not in shown
