"""Ctrl-C, signals, a closed terminal and a crash: what was said is kept, and the model knows how it ended."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from kantan_agents.cli.chat.kept_conversation import LOST
from kantan_agents.cli.chat.progress import INTERRUPTED
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from tests.cli.chat.held import Held

CTRL_C, CTRL_D = "\x03", "\x04"


def test_ctrl_c_ends_the_answer_and_keeps_the_conversation(chat: Any, kept: Any) -> None:
    with Held("Once upon a time ", "...") as held, OfflineServer([held.reply, "Gladly."]) as server:
        terminal = chat(server)
        terminal.enter("Tell a story.", until="Once upon a time")
        terminal.type(CTRL_C, until="interrupted")
        terminal.wait_for_prompt()
        terminal.ask("A shorter one.", "Gladly.")
    sent = [(item["role"], item["content"]) for item in server.requests[1].body["input"]]
    assert sent == [
        ("user", "Tell a story."),
        ("assistant", "Once upon a time "),
        ("assistant", INTERRUPTED),
        ("user", "A shorter one."),
    ]
    assert [turn.outcome for turn in kept().turns] == ["interrupted", "finished"]
    assert kept().turns[0].answer == "Once upon a time "


def test_ctrl_c_during_a_tool_call_keeps_what_was_called(chat: Any, shop: str) -> None:
    calls = [
        ScriptedToolCall("look", {"what": "it"}, "call_1"),
        ScriptedToolCall("wait", {"what": "x"}, "call_2"),
    ]
    with OfflineServer([[calls[0]], ["Now I wait.", calls[1]], "Yes."]) as server:
        terminal = chat(server, "--agent", shop)
        terminal.enter("Wait.", until="wait ...")
        terminal.type(CTRL_C, until="interrupted")
        terminal.wait_for_prompt()
        terminal.enter("Are you there?", until="Yes.")
    sent = server.requests[-1].body["input"]
    outputs = {item["call_id"]: item["output"] for item in sent if item.get("type") == "function_call_output"}
    assert outputs == {"call_1": "it: seen", "call_2": "The call was interrupted. It may have had effects."}
    called = {item["call_id"]: item["name"] for item in sent if item.get("type") == "function_call"}
    assert called == {"call_1": "look", "call_2": "wait"}
    assert sent[-2]["content"] == INTERRUPTED


def test_ctrl_c_clears_what_was_typed_and_twice_at_the_empty_prompt_ends(chat: Any) -> None:
    with OfflineServer([]) as server:
        terminal = chat(server)
        terminal.type("never mind", until="never mind")
        terminal.type(CTRL_C)
        terminal.wait_for_prompt()
        terminal.type(CTRL_C, until="Ctrl-C again ends the chat.")
        terminal.wait_for_prompt()
        terminal.type(CTRL_C)
        assert terminal.wait_for_end() == 0
    assert server.requests == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_mid_answer_ends_the_chat_and_keeps_it(chat: Any, kept: Any, number: int) -> None:
    with Held("Half an ", "answer.") as held, OfflineServer([held.reply]) as server:
        terminal = chat(server)
        terminal.enter("Go.", until="Half an")
        terminal.program.send_signal(number)
        assert terminal.wait_for_end() == 128 + number
    (turn,) = kept().turns
    assert (turn.question, turn.answer, turn.outcome) == ("Go.", "Half an ", "interrupted")


def test_a_signal_at_the_prompt_ends_the_chat(chat: Any) -> None:
    with OfflineServer([]) as server:
        terminal = chat(server)
        terminal.type("half a question", until="half a question")
        terminal.program.terminate()
        assert terminal.wait_for_end() == 143


def test_a_tool_that_nothing_can_end_does_not_hold_the_chat(chat: Any, shop: str, kept: Any) -> None:
    with OfflineServer([ScriptedToolCall("block", {"what": "x"}), "Yes."]) as server:
        terminal = chat(server, "--agent", shop)
        terminal.enter("Block.", until="block ...")
        terminal.type(CTRL_C, until="interrupted")
        terminal.wait_for_prompt()
        terminal.ask("Are you there?", "Yes.")
        terminal.enter("/exit")
        assert terminal.wait_for_end() == 0
    assert [turn.outcome for turn in kept().turns] == ["interrupted", "finished"]


def test_a_closed_terminal_ends_the_chat_and_keeps_it(chat: Any, kept: Any) -> None:
    with Held("Half an ", "answer.") as held, OfflineServer([held.reply]) as server:
        terminal = chat(server)
        terminal.enter("Go.", until="Half an")
        terminal.hang_up()
        assert terminal.program.wait(60) == 129
        assert terminal.program.stderr is not None
        assert terminal.program.stderr.read() == b""
    (turn,) = kept().turns
    assert (turn.answer, turn.outcome) == ("Half an ", "interrupted")


def test_a_terminal_that_is_closed_at_the_prompt_ends_the_chat(chat: Any) -> None:
    with OfflineServer([]) as server:
        terminal = chat(server)
        terminal.hang_up()
        assert terminal.program.wait(60) == 129


def test_after_a_crash_the_conversation_goes_on(chat: Any, shop: str, kept: Any) -> None:
    calls = [
        ScriptedToolCall("look", {"what": "it"}, "call_1"),
        ScriptedToolCall("wait", {"what": "x"}, "call_2"),
    ]
    with OfflineServer(["Hello.", [calls[0]], [calls[1]]]) as server:
        terminal = chat(server, "--agent", shop)
        terminal.ask("Hi.", "Hello.")
        terminal.enter("Look, then wait.", until="wait ...")
        terminal.program.kill()
        terminal.wait_for_end()
    assert [turn.outcome for turn in kept().turns] == ["finished", "open"]
    with OfflineServer(["I am back."]) as server:
        terminal = chat(server, "--agent", shop, "--resume", "last")
        assert "This answer was not finished." in terminal.shown
        terminal.enter("What happened?", until="I am back.")
    sent = server.requests[0].body["input"]
    assert [item.get("content") or item.get("output") or item.get("name") for item in sent] == [
        "Hi.",
        "Hello.",
        "Look, then wait.",
        "look",
        "it: seen",
        LOST,
        "What happened?",
    ]


def test_two_chats_at_once_keep_their_conversations_in_one_file(chat: Any, kept: Any) -> None:
    with OfflineServer(lambda request: f"Answer to {request.body['input'][-1]['content']}.") as server:
        one, other = chat(server), chat(server)
        for number in range(3):
            for name, terminal in (("one", one), ("other", other)):
                terminal.ask(f"{name} {number}", f"Answer to {name} {number}.")
        listed = one.enter("/resume", until="3 turns", count=2)
    ids = [line.split()[0] for line in listed.splitlines() if "3 turns" in line]
    asked = {tuple(turn.question for turn in kept(name).turns) for name in ids}
    assert asked == {("one 0", "one 1", "one 2"), ("other 0", "other 1", "other 2")}


def test_two_chats_with_one_conversation_part_where_they_differ(chat: Any, kept: Any) -> None:
    with OfflineServer(lambda request: f"Answer to {request.body['input'][-1]['content']}.") as server:
        one = chat(server)
        one.ask("first", "Answer to first.")
        shared = kept().id
        other = chat(server, "--resume", "last")
        other.ask("theirs", "Answer to theirs.")
        one.enter("mine", until=f"Another chat has gone on with {shared}")
        one.wait_for("Answer to mine.")
        one.wait_for_prompt()
    assert [turn.question for turn in kept(shared).turns] == ["first", "theirs"]
    assert [turn.question for turn in kept().turns] == ["first", "mine"]
    assert json.dumps(server.requests[-1].body["input"]).count("theirs") == 0
