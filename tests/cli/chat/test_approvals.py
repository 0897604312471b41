"""Approvals asked in place: nothing is called without a yes, and a refusal reaches the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kantan_agents.testing import OfflineServer, ScriptedToolCall
from tests.cli.chat.held import Held
from tests.cli.chat.shop import paid

QUESTION = "[y]es, [n]o, [a]lways:"


def pay(amount: int, tool: str = "pay") -> ScriptedToolCall:
    return ScriptedToolCall(tool, {"amount": amount})


def outputs(request: Any) -> list[str]:
    """The results of calls in a request of either API."""
    return [item["output"] for item in request.body["input"] if item.get("type") == "function_call_output"]


def test_a_call_is_made_after_a_yes_only(chat: Any, shop: str, folder: Path) -> None:
    with OfflineServer([pay(50), "Paid."]) as server:
        terminal = chat(server, "--agent", shop)
        shown = terminal.enter("Pay the bill.", until=QUESTION)
        assert "shop asks for an approval of pay:" in shown
        assert '"amount": 50' in shown
        assert paid(folder) == []
        terminal.enter("perhaps", until=QUESTION, count=2)
        assert paid(folder) == []
        terminal.enter("y", until="Paid.")
    assert paid(folder) == ["50"]


def test_a_refusal_with_its_reason_is_sent_to_the_model(chat: Any, shop: str, folder: Path) -> None:
    with OfflineServer([pay(900), "I see."]) as server:
        terminal = chat(server, "--agent", shop)
        terminal.enter("Pay the bill.", until=QUESTION)
        terminal.enter("no", until="Why not?")
        terminal.enter("Too much.", until="I see.")
    assert paid(folder) == []
    assert outputs(server.requests[1]) == ["The user did not approve this call. The reason: Too much."]


def test_always_is_for_the_same_call_in_this_conversation(chat: Any, shop: str, folder: Path) -> None:
    replies = [pay(1), pay(1), pay(3), "Done.", pay(1), "Over."]
    with OfflineServer(replies) as server:
        terminal = chat(server, "--agent", shop)
        shown = terminal.enter("Pay twice, and lend.", until=QUESTION)
        assert "always: calls of pay with these arguments" in shown
        terminal.enter("a")
        terminal.wait_for(QUESTION, 2)  # other arguments
        assert paid(folder) == ["1", "1"]
        terminal.enter("n", until="Why not?")
        terminal.ask("", "Done.")
        terminal.ask("/new", "A new conversation.")
        terminal.enter("Pay again.", until=QUESTION, count=3)
        terminal.enter("y", until="Over.")
    assert paid(folder) == ["1", "1", "1"]


@pytest.mark.slow
def test_always_is_for_a_folder_and_never_for_a_protected_file(chat: Any, folder: Path) -> None:
    (folder / "docs").mkdir()
    (folder / "docs/a.md").write_text("one\ntwo\n")

    def write(path: str, content: str) -> ScriptedToolCall:
        return ScriptedToolCall("Write", {"file_path": path, "content": content})

    read = ScriptedToolCall("Read", {"file_path": "docs/a.md"})
    replies = [
        read,
        write("docs/a.md", "one\n2\u200b\n"),
        write("docs/b/c.md", "new\n"),
        write("e.md", "e\n"),
    ]
    replies += [write("docs/.mcp.json", "{}\n")]
    with OfflineServer([*replies, "Done."]) as server:
        terminal = chat(server, "--tools", ".", "--write")
        shown = terminal.enter("Write.", until=QUESTION)
        assert "It changes docs/a.md:" in shown and "-two" in shown and "+2[U+200B]" in shown
        assert "always: changes of files in docs/" in shown
        shown = terminal.enter("a", until="It creates e.md:")
        terminal.wait_for(QUESTION, 2)
        assert (folder / "docs/b/c.md").read_text() == "new\n"
        terminal.enter("a")  # every file of the folder, but those
        shown = terminal.wait_for("[y]es, [n]o:")
        assert "docs/.mcp.json is protected: it decides which programs are started" in shown
        assert not (folder / "docs/.mcp.json").exists()
        terminal.enter("a", until="Type y for this call, or n to refuse it.")
        terminal.wait_for("[y]es, [n]o:", 2)  # what is typed before a question does not answer it
        assert not (folder / "docs/.mcp.json").exists()
        terminal.enter("y", until="Done.")
    assert (folder / "docs/.mcp.json").exists()


def test_calls_of_a_subagent_are_asked_for_in_place(chat: Any, shop: str, folder: Path) -> None:
    task = ScriptedToolCall("Task", {"description": "pay", "prompt": "Pay.", "subagent_type": "cashier"})
    with OfflineServer([task, pay(7), "I paid 7.", pay(8), "Both paid."]) as server:
        terminal = chat(server, "--agent", shop)
        terminal.enter("Let somebody pay 7, then pay 8.", until="cashier asks for an approval of pay:")
        terminal.wait_for(QUESTION)
        terminal.enter("always")
        # The same name, but another agent.
        terminal.wait_for("shop asks for an approval of pay:")
        terminal.wait_for(QUESTION, 2)
        assert paid(folder) == ["7"]
        shown = terminal.enter("y", until="Both paid.")
    assert paid(folder) == ["7", "8"]
    assert "* cashier: pay" in shown


def test_a_refused_call_of_a_subagent_goes_to_its_model(chat: Any, shop: str, folder: Path) -> None:
    task = ScriptedToolCall("Task", {"description": "pay", "prompt": "Pay.", "subagent_type": "cashier"})
    with OfflineServer([task, pay(7), "I may not.", "Nobody may."]) as server:
        terminal = chat(server, "--agent", shop)
        terminal.enter("Let somebody pay.", until=QUESTION)
        terminal.enter("n", until="Why not?")
        terminal.enter("No money.", until="Nobody may.")
    assert paid(folder) == []
    assert outputs(server.requests[2]) == ["The user did not approve this call. The reason: No money."]
    assert outputs(server.requests[3]) == ["I may not."]


def test_ctrl_c_at_the_question_ends_the_answer_without_the_call(chat: Any, shop: str, folder: Path) -> None:
    task = ScriptedToolCall("Task", {"description": "pay", "prompt": "Pay.", "subagent_type": "cashier"})
    with OfflineServer([pay(5), task, pay(6), "Fine."]) as server:
        terminal = chat(server, "--agent", shop)
        for number in (1, 2):
            terminal.enter("Pay.", until=QUESTION, count=number)
            terminal.type("\x03", until="interrupted", count=number)
            terminal.wait_for_prompt()
        terminal.enter("Go on.", until="Fine.")
    assert paid(folder) == []


def test_a_signal_at_the_question_ends_the_chat_without_the_call(
    chat: Any, shop: str, folder: Path, kept: Any
) -> None:
    with OfflineServer([pay(5)]) as server:
        terminal = chat(server, "--agent", shop)
        terminal.enter("Pay.", until=QUESTION)
        terminal.program.terminate()
        assert terminal.wait_for_end() == 143
    assert paid(folder) == []
    assert kept().turns[0].outcome == "interrupted"


def test_what_was_typed_before_the_question_is_no_answer(chat: Any, shop: str, folder: Path) -> None:
    with Held("A moment. ", "Now.") as held, OfflineServer([held.reply, pay(5), "Refused."]) as server:
        terminal = chat(server, "--agent", shop)
        terminal.type("First.\ry\ry\r")  # pasted: the rest is read with the message
        terminal.wait_for("A moment.")
        terminal.type("y\ry\r")
        held.go_on()
        terminal.wait_for(QUESTION)
        assert paid(folder) == []
        terminal.enter("n", until="Why not?")
        terminal.enter("", until="Refused.")
    assert paid(folder) == []


def test_a_question_shows_all_arguments_as_text(chat: Any, shop: str, folder: Path) -> None:
    hidden = "".join(chr(0xE0000 + ord(one)) for one in "rm")
    long = f"{'x' * 300}\x1b]0;owned\x07[bold]end{hidden}\u200b\u202e\N{MAN}\u200d\N{GIRL}"
    call = ScriptedToolCall("pay", {"amount": 1, "note": long})
    with OfflineServer([call, "Done."]) as server:
        terminal = chat(server, "--agent", shop)
        shown = terminal.enter("Pay.", until=QUESTION)
    assert long[:300] in shown.replace("\n", "")
    assert "\\u001b]0;owned\\u0007[bold]end[U+E0072][U+E006D][U+200B][U+202E]" in shown.replace("\n", "")
    assert "\N{MAN}[U+200D]\N{GIRL}" in shown.replace("\n", "")  # also where it only joins
    assert b"\x1b]0;owned" not in terminal.written


def test_tools_that_were_named_at_the_start_are_not_asked_for(chat: Any, shop: str, folder: Path) -> None:
    with OfflineServer([pay(5), pay(6, "lend"), "Done."]) as server:
        terminal = chat(server, "--agent", shop, "--yes", "pay")
        terminal.enter("Pay and lend.", until="shop asks for an approval of lend:")
        assert paid(folder) == ["5"]
