"""The commands of the chat, and the agent's tools as commands."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.cli.chat.compact import HEADING
from kantan_agents.testing import OfflineServer, ScriptedToolCall


def test_help_lists_the_commands_and_the_tools_that_a_person_may_run(chat: Any, shop: str) -> None:
    with OfflineServer([]) as server:
        terminal = chat(server, "--agent", shop)
        shown = terminal.ask("/help", "/wait WHAT")
        assert "/resume [ID]: List the conversations" in shown
        assert "/look WHAT: Look at something." in shown
        assert "/pay" not in shown
        terminal.ask("/help cost", "/cost: Show the tokens of this chat")
        terminal.ask("/help look", "what (text, required)", 1)
    assert server.requests == []


def test_a_tool_runs_as_a_command_and_the_model_knows_it(chat: Any, shop: str) -> None:
    with OfflineServer(["You looked."]) as server:
        terminal = chat(server, "--agent", shop)
        terminal.ask("/look here", "here: seen")
        terminal.ask("/delete x", "[E8] Tool is not allowed: delete")
        terminal.ask("/serach x", "[E54] Unknown command /serach. Did you mean /search")
        terminal.ask("What did I do?", "You looked.")
    kinds = [item.get("type", item.get("content")) for item in server.requests[0].body["input"]]
    assert kinds == ["/look here", "function_call", "function_call_output", "What did I do?"]


def test_an_agent_without_slash_commands_has_none(chat: Any, shop: str) -> None:
    with OfflineServer([]) as server:
        terminal = chat(server, "--agent", f"{shop.partition(':')[0]}:without_commands")
        terminal.ask("/look here", "[E54] Unknown command /look.")
        terminal.ask("/hlep", "Did you mean /help?")
    assert server.requests == []


def test_two_slashes_send_a_text(chat: Any) -> None:
    with OfflineServer(["A folder."]) as server:
        chat(server).ask("//etc is what?", "A folder.")
    assert server.requests[0].body["input"][-1]["content"] == "/etc is what?"


def test_the_model_can_be_changed(chat: Any) -> None:
    with OfflineServer(["One.", "Two."]) as server:
        terminal = chat(server, "--model", "gpt-6.1-terra")
        terminal.ask("1?", "One.")
        terminal.ask("/model", "model: gpt-6.1-terra")
        terminal.ask("/model openrouter/x", "[E47]")
        terminal.ask("/model ollama/llama3.2", "model: ollama/llama3.2")
        terminal.ask("2?", "Two.")
    assert [request.model for request in server.requests] == ["gpt-6.1-terra", "llama3.2"]
    assert [one["content"] for one in server.requests[1].body["messages"][1:]] == ["1?", "One.", "2?"]


def test_another_model_replaces_the_one_in_a_file(chat: Any, folder: Path) -> None:
    text = "---\nname: poet\ndescription: Rhymes.\nmodel: gpt-6.1-terra\n---\nAnswer in rhymes.\n"
    (folder / "poet.md").write_text(text)
    with OfflineServer(["One.", "Two."]) as server:
        terminal = chat(server, "--agent", "poet.md")
        terminal.ask("1?", "One.")
        terminal.ask("/model ollama/llama3.2", "model: ollama/llama3.2")
        terminal.ask("2?", "Two.")
    assert [request.model for request in server.requests] == ["gpt-6.1-terra", "llama3.2"]


def test_cost_counts_the_tokens_of_subagents_too(chat: Any, shop: str) -> None:
    task = ScriptedToolCall("Task", {"description": "x", "prompt": "Hi", "subagent_type": "cashier"})
    with OfflineServer([task, "Hi.", "Done."]) as server:
        arguments = ("--agent", shop, "--model", "gpt-6.1-terra", "--price", "gpt-6.1-terra=1000,2000")
        terminal = chat(server, *arguments)
        terminal.ask("/cost", "No model was called yet.")
        terminal.ask("Ask somebody.", "Done.")
        shown = terminal.ask("/cost", "together:")
    assert "gpt-6.1-terra: 30 in, 15 out, 0.0600" in shown
    assert "together: 0.0600" in shown


def test_a_cost_that_is_not_zero_is_not_shown_as_zero(chat: Any) -> None:
    with OfflineServer(["Hi."]) as server:
        terminal = chat(server, "--model", "gpt-6.1-terra", "--price", "gpt-6.1-terra=1,2")
        terminal.ask("Hello", "Hi.")
        terminal.ask("/cost", "together: less than 0.0001")


def test_trace_names_the_command_that_shows_the_last_answer(
    chat: Any, kept: Any, environment: dict[str, str]
) -> None:
    with OfflineServer(["Hi."]) as server:
        terminal = chat(server)
        terminal.ask("/trace", "[E196] Cannot run /trace: there is no answer yet")
        terminal.ask("Hello", "Hi.")
        shown = terminal.ask("/trace", "traces open")
    expected = f"kantan-agents traces open {kept().turns[0].trace_id} --db {environment['KANTAN_AGENTS_DB']}"
    assert expected in shown.replace("\n", "")


def test_the_page_of_the_last_answer_can_be_opened(chat: Any, kept: Any, folder: Path) -> None:
    import urllib.error
    import urllib.request

    with OfflineServer(["Hi."]) as server:
        terminal = chat(server, env={"BROWSER": "true"})
        terminal.ask("Hello", "Hi.")
        # What a tool writes here takes the place of no program.
        (folder / "kantan_agents.py").write_text("open('executed', 'w')")
        shown = terminal.ask("/trace open", "http://127.0.0.1:")
        found = re.search(r"http://\S+\n?\S*\n?\S*", shown)
        assert found is not None
        address = found[0].replace("\n", "").split(">")[0]
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(address) as page:
            assert page.status == 200
        terminal.enter("/exit")
        assert terminal.wait_for_end() == 0
        with pytest.raises(urllib.error.URLError):
            browser.open(address)
        assert not (folder / "executed").exists()


def test_without_a_trace_database_there_is_nothing_to_open(chat: Any) -> None:
    with OfflineServer(["Hi."]) as server:
        terminal = chat(server, "--no-record")
        terminal.ask("Hello", "Hi.")
        terminal.ask("/trace", "the answers of this chat are not recorded")


def test_compact_goes_on_with_a_summary_that_the_model_writes(chat: Any, kept: Any, shop: str) -> None:
    look = ScriptedToolCall("look", {"what": "it"})
    with OfflineServer([look, "It is blue.", "The user likes blue.", "Blue."]) as server:
        terminal = chat(server, "--agent", shop)
        terminal.ask("/compact", "nothing has been said yet")
        terminal.ask("Look at it.", "It is blue.")
        terminal.ask("/compact", "The user likes blue.")
        terminal.ask("What do I like?", "Blue.", 1)
        terminal.wait_for("Blue.")
    record = server.requests[2].body["input"][0]["content"]
    assert "user: Look at it." in record
    assert 'assistant calls look: {"what": "it"}' in record
    assert "result: it: seen" in record
    assert server.requests[2].body["tools"] == []
    sent = [item["content"] for item in server.requests[3].body["input"]]
    assert sent == [f"{HEADING}\n\nThe user likes blue.", "What do I like?"]
    # Nothing is lost: the turns before it are still in the file.
    assert [turn.kind for turn in kept().turns] == ["turn", "summary", "turn"]


def test_conversations_are_found_and_resumed(chat: Any, file: Path) -> None:
    with OfflineServer(["Rome.", "Oslo.", "It is old."]) as server:
        terminal = chat(server)
        terminal.ask("Capital of ITALY?", "Rome.")
        terminal.ask("/new", "A new conversation.")
        terminal.ask("Capital of Norway?", "Oslo.")
        listed = terminal.ask("/search italy", "1 turn Capital of ITALY?")
        found = re.search(r"^(\w{8}) .*ITALY", listed, re.MULTILINE)
        assert found is not None
        terminal.ask(f"/resume {found[1][:5]}", f"{found[1]}: 1 turn, the last:")
        terminal.ask("How old is it?", "It is old.")
        terminal.ask("/search", "name a word: /search WORD")
        terminal.ask("/resume zzz", "[E194] Conversation not found: zzz")
        terminal.ask("/search nowhere", "'nowhere' was said in no conversation that is kept.")
    sent = [item["content"] for item in server.requests[2].body["input"]]
    assert sent[0] == "Capital of ITALY?"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_without_saving_no_file_is_made(chat: Any, file: Path) -> None:
    with OfflineServer(["Hi.", "Again."]) as server:
        terminal = chat(server, "--no-save")
        terminal.ask("Hello", "Hi.")
        terminal.ask("/resume", "started with --no-save")
        terminal.ask("Hello again", "Again.")
    assert not file.exists()
    assert len(server.requests[1].body["input"]) == 3


def test_files_and_images_are_sent_by_name(chat: Any, folder: Path) -> None:
    (folder / "my notes.txt").write_text("milk")
    (folder / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n...")
    (folder / "out").symlink_to("/etc")
    with OfflineServer(["Milk, and a dot."]) as server:
        terminal = chat(server)
        terminal.ask("See @out/passwd", "[E193] Cannot send @out/passwd: a link leads to it")
        terminal.ask("See @/etc/passwd", "[E193] Cannot send @/etc/passwd: it is outside")
        shown = terminal.ask('Hi @aiko, see @"my notes.txt" and @dot.png.', "Milk, and a dot.")
    assert "@aiko is not a file here; it was sent as text" in shown
    text, notes, image = server.requests[0].body["input"][0]["content"]
    assert text["text"] == 'Hi @aiko, see @"my notes.txt" and @dot.png.'
    assert notes["text"] == "The file my notes.txt (4 bytes):\n\nmilk"
    assert image["image_url"].startswith("data:image/png;base64,iVBOR")


def test_commands_and_files_are_completed(chat: Any, shop: str, folder: Path) -> None:
    (folder / "notes.txt").write_text("")
    (folder / "evil\x1b]0;owned\x07.txt").write_text("")
    with OfflineServer(["Fine."]) as server:
        terminal = chat(server, "--agent", shop)
        terminal.type("/lo", until="Look at something.")
        terminal.type("\tok\x03")
        terminal.wait_for_prompt()
        terminal.type("See @no", until="notes.txt")
        terminal.type("\t now\r", until="Fine.")
        terminal.wait_for_prompt()
        terminal.type("@ev", until="@ev")
    assert server.requests[0].body["input"][0]["content"][0]["text"] == "See @notes.txt now"
    assert b"\x1b]0;owned" not in terminal.written
