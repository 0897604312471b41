"""Answers on a terminal: streamed, with folded tool calls, at any width, without what could harm it."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.testing import OfflineServer, Reply, ScriptedToolCall
from tests.cli.chat.held import Held

COLOR = re.compile(rb"\x1b\[[0-9;]*[349][0-9][0-9;]*m")


def test_an_answer_is_shown_and_the_next_one_knows_it(chat: Any, kept: Any) -> None:
    with OfflineServer(["It is Oslo.", "About 700,000."]) as server:
        terminal = chat(server)
        terminal.ask("Capital of Norway?", "It is Oslo.")
        terminal.ask("How many people?", "About 700,000.")
        terminal.type("\x04")
        assert terminal.wait_for_end() == 0
    said = [item["content"] for item in server.requests[1].body["input"]]
    assert said[0] == "Capital of Norway?"
    assert said[1][0]["text"] == "It is Oslo."
    assert said[2] == "How many people?"
    assert [(turn.question, turn.answer, turn.outcome) for turn in kept().turns] == [
        ("Capital of Norway?", "It is Oslo.", "finished"),
        ("How many people?", "About 700,000.", "finished"),
    ]


def test_the_text_is_shown_while_the_model_still_writes(chat: Any) -> None:
    with Held("The first part, ", "and the rest.") as held, OfflineServer([held.reply]) as server:
        terminal = chat(server)
        shown = terminal.enter("Go on.", until="The first part,")
        assert "and the rest." not in shown
        held.go_on()
        terminal.wait_for("The first part, and the rest.")


def test_an_answer_that_was_cut_off_at_the_limit_of_tokens_says_so(chat: Any) -> None:
    with OfflineServer([Reply("Once upon", is_cut=True), "All of it."]) as server:
        terminal = chat(server, "--model", "ollama/llama3.2")
        terminal.enter("A story.")
        shown = terminal.wait_for("! cut off: the answer has reached the limit of its tokens\n")
        assert "Once upon\n! cut off:" in shown
        terminal.wait_for_prompt()
        terminal.enter("Again.", until="All of it.")
        assert terminal.wait_for_prompt().count("! cut off:") == 1


def test_a_tool_call_is_one_line_and_a_refusal_names_its_rule(chat: Any, shop: str, folder: Path) -> None:
    (folder / "rules.json").write_text('{"deny": ["del*"]}')
    calls = [ScriptedToolCall("look", {"what": "the shelf"}), ScriptedToolCall("delete", {"path": "all"})]
    with OfflineServer([["I look.", *calls], "Done."]) as server:
        terminal = chat(server, "--agent", shop, "--rules", "rules.json")
        shown = terminal.ask("Clean up.", "Done.")
    assert re.search(r"^I look\.$", shown, re.MULTILINE)
    assert re.search(r"^\* look \d+ ms  what=the shelf$", shown, re.MULTILINE)
    assert re.search(r"^! delete denied by deny: del\*, in explicit  path=all$", shown, re.MULTILINE)


def test_what_a_model_or_a_tool_says_is_only_text(chat: Any, shop: str) -> None:
    name = "evil\x1b[31m\x1b]0;owned\x07[bold]tool"
    replies = [
        [
            "[bold]no[/bold] :smile: \x1b]0;owned\x07\x1b[31mred\x9b2J\u202eback\r",
            ScriptedToolCall("look", {"what": "\x1b]0;owned\x07[red]", "\x1b[31m": "\x9b"}),
        ],
        ScriptedToolCall(name, {"x": "\x1b[31m"}),
        "Done.",
    ]
    with OfflineServer(replies) as server:
        terminal = chat(server, "--agent", shop)
        shown = terminal.ask("Harm me.", "Done.")
    assert (
        "[bold]no[/bold] :smile: [U+001B]]0;owned[U+0007][U+001B][31mred[U+009B]2J[U+202E]back"
        in shown.replace("\n", "")
    )
    assert "what=[U+001B]]0;owned[U+0007][red]" in shown
    assert b"\x1b]0;owned" not in terminal.written
    assert b"\x1b[31mred" not in terminal.written
    assert "\u202e".encode() not in terminal.written
    assert "\x9b".encode() not in terminal.written


def test_twenty_columns_are_enough(chat: Any, shop: str) -> None:
    call = ScriptedToolCall("look", {"what": "a very long shelf with very many things on it"})
    with OfflineServer([[call], "An answer of more than twenty columns."]) as server:
        terminal = chat(server, "--agent", shop, columns=20)
        shown = terminal.ask("Look around, please!", "columns.")
    assert len(re.findall(r"^\* look \d+ ms  what.*…$", shown, re.MULTILINE)) == 1
    assert "An answer of more th\nan twenty columns." in shown


def test_the_terminal_may_become_narrow_in_mid_answer(chat: Any, shop: str) -> None:
    call = ScriptedToolCall("look", {"what": "a very long shelf with very many things on it"})
    with Held("Begun. ", "Ended.") as held, OfflineServer([[call], held.reply, [call], "Over."]) as server:
        terminal = chat(server, "--agent", shop)
        terminal.enter("Look.")
        assert "things on it" in terminal.wait_for("Begun.")
        terminal.resize(20)
        held.go_on()
        terminal.wait_for("Ended.")
        terminal.wait_for_prompt()
        shown = terminal.ask("Again.", "Over.")
    assert len(re.findall(r"^\* look \d+ ms  what.*…$", shown, re.MULTILINE)) == 1


def test_without_colors_there_are_none(chat: Any, shop: str) -> None:
    replies = [[ScriptedToolCall("look", {"what": "x"})], "Done.", [ScriptedToolCall("look", {"what": "x"})]]
    with OfflineServer([*replies, "Done again."]) as server:
        plain = chat(server, "--agent", shop, env={"NO_COLOR": "1"})
        plain.ask("Look.", "Done.")
        colored = chat(server, "--agent", shop)
        colored.enter("Look.", until="Done again.")
    assert not COLOR.search(plain.written)
    assert COLOR.search(colored.written)


def test_an_answer_that_fails_is_said_and_the_chat_goes_on(chat: Any, kept: Any) -> None:
    failure = Reply("overloaded\x1b[31m", status=400)
    with OfflineServer([failure, "Now it works."]) as server:
        terminal = chat(server)
        terminal.ask("Hello?", "error: [openai][400] overloaded[U+001B][31m")
        terminal.ask("Hello again?", "Now it works.")
    assert [turn.outcome for turn in kept().turns] == ["failed", "finished"]
    sent = [item["content"] for item in server.requests[1].body["input"]]
    assert server.requests[1].body["input"][1]["type"] == "message"  # llama.cpp refuses an answer without it
    assert sent == ["Hello?", "[This answer failed and was not finished.]", "Hello again?"]


def test_a_message_may_have_several_lines(chat: Any) -> None:
    with OfflineServer(["Two."]) as server:
        terminal = chat(server)
        terminal.type("one\x1b\rtwo\r", until="Two.")
    assert server.requests[0].body["input"][-1]["content"] == "one\ntwo"


def test_the_agent_is_one_of_a_file(chat: Any, folder: Path) -> None:
    (folder / "poet.md").write_text("---\nname: poet\ndescription: Rhymes.\n---\nAnswer in rhymes.\n")
    with OfflineServer(["Sure."]) as server:
        terminal = chat(server, "--agent", "poet.md", "--model", "gpt-6.1-terra")
        assert "poet, gpt-6.1-terra." in terminal.shown
        terminal.enter("Hi", until="Sure.")
    assert server.requests[0].body["instructions"].startswith("Answer in rhymes.")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--agent", "shop:nothing"), "it must be an Agent, not int"),
        (("--agent", "shop:broken"), "no disk"),
        (("--agent", "shop:missing"), "has no attribute 'missing'"),
        (("--agent", "shop:agent", "--instructions", "x"), "cannot be combined with --instructions"),
        (("--no-save", "--resume", "last"), "cannot be combined with --resume"),
        (("--rules", "-"), "standard input is already read"),
        (("--resume", "nowhere"), "[E194] Conversation not found: nowhere"),
    ],
)
def test_bad_arguments_are_one_line(lines: Any, shop: str, arguments: tuple[str, ...], reason: str) -> None:
    with OfflineServer([]) as server:
        ended = lines(server, b"", *arguments)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert reason in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_answers_are_recorded_as_one_group(chat: Any, environment: dict[str, str], kept: Any) -> None:
    with OfflineServer(["One.", "Two."]) as server:
        terminal = chat(server)
        for question, answer in (("1?", "One."), ("2?", "Two.")):
            terminal.ask(question, answer)
        terminal.enter("/exit")
        assert terminal.wait_for_end() == 0
    connection = sqlite3.connect(environment["KANTAN_AGENTS_DB"])
    rows = connection.execute("SELECT id, group_id FROM traces").fetchall()
    connection.close()
    conversation = kept()
    assert {row[1] for row in rows} == {conversation.id}
    assert {row[0] for row in rows} == {turn.trace_id for turn in conversation.turns}
