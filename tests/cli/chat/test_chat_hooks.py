"""Hooks in a chat: before a question about a call, around a message, and ended by Ctrl-C."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.testing import OfflineServer, ScriptedToolCall
from tests.cli.chat.shop import paid
from tests.cli.chat.terminal import PATIENCE

QUESTION = "[y]es, [n]o, [a]lways:"
Configure = Callable[..., Path]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """``configure(PreToolUse=("pay", "exit 2"))`` writes the user's hooks, and returns their folder."""

    def write(**events: tuple[str, str]) -> Path:
        own = tmp_path / "home/.config/kantan_agents"
        own.mkdir(parents=True, mode=0o755)
        hooks = {
            event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]
            for event, (matcher, command) in events.items()
        }
        (own / "hooks.json").write_text(json.dumps({"hooks": hooks}))
        (own / "hooks.json").chmod(0o644)
        return own

    return write


def pay(amount: int) -> ScriptedToolCall:
    return ScriptedToolCall("pay", {"amount": amount}, f"call_{amount}")


def outputs(server: OfflineServer, request: int) -> list[str]:
    items = server.requests[request].body["input"]
    return [item["output"] for item in items if item.get("type") == "function_call_output"]


def wait_for(path: Path) -> None:
    """Wait for a file that a hook makes, which shows nothing."""
    end = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_hook_decides_before_the_person_is_asked(
    chat: Any, shop: str, folder: Path, configure: Configure
) -> None:
    guard = "cat >> seen; tail -n 1 seen | grep -q '\"amount\": 900' && { echo too much >&2; exit 2; }; true"
    own = configure(PreToolUse=("pay", guard), Stop=("", "echo remember >&2; exit 2"))
    with OfflineServer([[pay(900), pay(5)], "Half of it."]) as server:
        terminal = chat(server, "--agent", shop)
        assert "PreToolUse pay: cat >> seen" in terminal.shown
        shown = terminal.enter("Pay the bills.", until=QUESTION)
        assert "! pay refused: A hook of the user blocks this call: too much" in shown
        assert '  "amount": 5' in shown and '  "amount": 900' not in shown
        assert paid(folder) == []
        terminal.enter("y", until="Half of it.")
        terminal.wait_for(": remember")
        terminal.wait_for_prompt()
        blocked, made = outputs(server, 1)
    assert "too much" in blocked and made == "paid 5"
    assert paid(folder) == ["5"]
    seen = [json.loads(line) for line in (own / "seen").read_text().splitlines()]
    assert [one["tool_input"]["amount"] for one in seen] == [900, 5]  # what was seen before is not seen again
    assert len({one["session_id"] for one in seen}) == 1


def test_ctrl_c_ends_a_hook_and_the_chat_goes_on(
    chat: Any, shop: str, folder: Path, configure: Configure, kept: Any
) -> None:
    wait = "cat > seen; grep -q wait seen || exit 0; touch waits; sleep 1000"
    own = configure(UserPromptSubmit=("", wait), PreToolUse=("pay", "touch guards; sleep 1000"))
    with OfflineServer([pay(5), "Yes."]) as server:
        terminal = chat(server, "--agent", shop)
        terminal.enter("Please wait.")
        wait_for(own / "waits")
        terminal.type("\x03", until="interrupted")
        terminal.wait_for_prompt()
        terminal.enter("Pay.")
        wait_for(own / "guards")
        terminal.type("\x03", until="interrupted", count=2)
        terminal.wait_for_prompt()
        terminal.enter("Are you there?", until="Yes.")
    assert QUESTION not in terminal.shown
    assert paid(folder) == []
    assert [turn.question for turn in kept().turns] == ["Pay.", "Are you there?"]


def test_in_a_pipe_a_message_is_kept_back_or_gets_more(lines: Any, configure: Configure) -> None:
    guard = "cat > seen; grep -q password seen && { printf 'a \\033[2Jpassword' >&2; exit 2; }; echo Monday"
    own = configure(
        UserPromptSubmit=("", guard), PostToolUse=("", "exit 1"), Stop=("ignored", "touch stopped")
    )
    with OfflineServer(["Hello."]) as server:
        ended = lines(server, b"My password is 1234.\nHi\n", "--no-save")
        assert [item["content"] for item in server.requests[0].body["input"]] == [
            [
                {"type": "input_text", "text": "Hi"},
                {"type": "input_text", "text": "\n\nAdded by a hook of the user:\nMonday"},
            ]
        ]
    assert (ended.returncode, ended.stdout) == (1, "Hello.\n")
    assert "not sent: " in ended.stderr and "a [U+001B][2Jpassword" in ended.stderr
    assert (own / "stopped").exists()


def test_a_wrong_file_starts_no_chat(lines: Any, configure: Configure) -> None:
    own = configure(Stop=("(", "true"))
    with OfflineServer([]) as server:
        ended = lines(server, b"Hi\n")
        assert ended.returncode == 2
        assert f"[E199] Hooks cannot be used: {own}/hooks.json: hooks.Stop[0].matcher: Input" in ended.stderr
        assert server.requests == []
