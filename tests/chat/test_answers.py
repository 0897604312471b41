"""Answers on a terminal: streamed, with folded tool calls, interrupted, and without what could harm it."""

from __future__ import annotations

from threading import Event
from typing import Any

from kantan_agents.testing import OfflineServer, ScriptedToolCall


def test_an_answer_is_shown_and_the_next_one_knows_it(chat: Any) -> None:
    with OfflineServer(["It is Oslo.", "About 700,000."]) as server:
        terminal = chat(server)
        terminal.enter("Capital of Norway?")
        terminal.wait_for("It is Oslo.")
        terminal.wait_for_prompt()
        terminal.enter("How many people?")
        terminal.wait_for("About 700,000.")
        terminal.wait_for_prompt()
        terminal.type("\x04")
        assert terminal.wait_for_end() == 0
    said = [item["content"] for item in server.requests[1].body["input"]]
    assert said[0] == "Capital of Norway?"
    assert said[1][0]["text"] == "It is Oslo."
    assert said[2] == "How many people?"
