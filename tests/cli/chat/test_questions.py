"""``AskUserQuestion`` in a chat: the person is asked in place, and the answer goes to the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kantan_agents.testing import OfflineServer, ScriptedToolCall
from tests.cli.chat.test_approvals import outputs

MODEL = ("--model", "gpt-6.1-terra")
ONE = "Number or other words:"
SEVERAL = "Numbers or other words:"
PAINTER = """---
name: painter
description: Paints.
tools: AskUserQuestion
---
Paint.
"""


@pytest.fixture
def painter(folder: Path) -> str:
    (folder / "painter.md").write_text(PAINTER)
    return "painter.md"


def asking(*questions: dict[str, Any]) -> ScriptedToolCall:
    return ScriptedToolCall("AskUserQuestion", {"questions": list(questions)})


COLOR = {
    "question": "Which \x1b[31mcolor?",
    "header": "[bold]Color",
    "options": [{"label": "Red"}, {"label": "Blue", "description": "sold\nout"}],
}
WALLS = {
    "question": "Which walls?",
    "options": [{"label": "Left"}, {"label": "Right"}, {"label": "Back"}],
    "multiSelect": True,
}


def test_numbers_and_words_are_answers(chat: Any, painter: str) -> None:
    with OfflineServer([asking(COLOR, WALLS), "Painted."]) as server:
        terminal = chat(server, "--agent", painter, *MODEL)
        shown = terminal.enter("Paint.", until=ONE)
        assert "[bold]Color: Which [U+001B][31mcolor?" in shown
        assert "1. Red" in shown
        assert "2. Blue: sold out" in shown
        for wrong, count in (("3", 2), ("1,2", 3), ("0", 4)):
            terminal.enter(wrong, until=ONE, count=count)
        terminal.enter("2", until=SEVERAL)
        terminal.enter("3, 1", until="Painted.")
    assert "Type one number from 1 to 2, other words, or nothing" in terminal.shown
    assert outputs(server.requests[1]) == [
        "The user has answered:\nWhich \x1b[31mcolor?\n  Blue\nWhich walls?\n  Back, Left"
    ]


def test_other_words_and_no_answer(chat: Any, painter: str) -> None:
    with OfflineServer([asking(COLOR, WALLS), "Painted."]) as server:
        terminal = chat(server, "--agent", painter, *MODEL)
        terminal.enter("Paint.", until=ONE)
        terminal.enter("green, with dots", until=SEVERAL)
        terminal.enter("", until="Painted.")
    assert outputs(server.requests[1]) == [
        "The user has answered:\nWhich \x1b[31mcolor?\n  green, with dots\nWhich walls?\n  not answered"
    ]


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_a_key_that_ends_the_question_ends_the_answer_and_keeps_the_conversation(
    chat: Any, painter: str, key: str
) -> None:
    with OfflineServer([asking(COLOR), "Fine."]) as server:
        terminal = chat(server, "--agent", painter, *MODEL)
        terminal.enter("Paint.", until=ONE)
        terminal.type(key, until="interrupted")
        terminal.wait_for_prompt()
        terminal.enter("Do nothing.", until="Fine.")


def test_nobody_is_asked_without_a_terminal(lines: Any, painter: str) -> None:
    with OfflineServer(["Done."]) as server:
        ended = lines(server, b"Paint.\n", "--agent", painter, *MODEL)
    assert (ended.returncode, ended.stdout) == (0, "Done.\n")
    assert "kantan-agents chat, at a terminal, gives AskUserQuestion" in ended.stderr
    assert not server.requests[0].body.get("tools")


def test_an_assistant_has_it_with_other_tools_only(chat: Any, folder: Path) -> None:
    for options, has_it in ((("--tools", "."), True), ((), False)):
        with OfflineServer(["Done."]) as server:
            terminal = chat(server, *options)
            terminal.enter("Paint.", until="Done.")
        names = [tool["name"] for tool in server.requests[0].body.get("tools", ())]
        assert ("AskUserQuestion" in names) == has_it
