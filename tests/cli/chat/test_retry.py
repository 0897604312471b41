"""``/retry``: the last answer again, without hiding from the model what its tools have done."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import anyio
import httpx
import openai
import pytest
from agents import MaxTurnsExceeded, function_tool
from rich.console import Console

from kantan_agents import Agent, CommandLoader
from kantan_agents.cli.chat.answer_runner import AnswerRunner
from kantan_agents.cli.chat.chat_hooks import ChatHooks
from kantan_agents.cli.chat.conversation import Conversation
from kantan_agents.cli.chat.conversations import Conversations
from kantan_agents.cli.chat.kept_conversation import LOST, ChatTurn, KeptConversation, Kind
from kantan_agents.cli.chat.mentions import read_message
from kantan_agents.cli.chat.plan_mode import PlanMode
from kantan_agents.cli.chat.progress import FAILED
from kantan_agents.cli.chat.retry import last_turn, may_pass, without_answer
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.chat.talk import Talk
from kantan_agents.cli.hooks.hooks import Hooks
from kantan_agents.cli.terminal.agent_options import AgentRunOptions
from kantan_agents.errors import ChatCommandError, ProviderRequestError, UnknownCommandError
from kantan_agents.middleware import SlashCommands
from kantan_agents.testing import OfflineServer, Reply, ScriptedToolCall
from tests.cli.chat.held import Held

BUSY = Reply("slow down", status=429, headers={"x-should-retry": "false"})
paid: list[int] = []


@function_tool
def pay(amount: int) -> str:
    """Pay an amount."""
    paid.append(amount)
    return f"paid {amount}"


class NoSignals:
    """Signals that never come."""

    @contextmanager
    def interrupting(self, interrupt: Any) -> Iterator[None]:
        yield


@pytest.fixture(params=["kept", "not kept"])
def store(request: pytest.FixtureRequest, file: Path) -> Iterator[Conversations | None]:
    """Where turns are kept: a file, or nowhere as with ``--no-save``."""
    made = Conversations(file) if request.param == "kept" else None
    yield made
    if made is not None:
        made.close()


@pytest.fixture
def talk(store: Conversations | None) -> Callable[..., Talk]:
    paid.clear()

    def make(server: OfflineServer, store: Conversations | None = store) -> Talk:
        agent = Agent("office", "Help.", model=server.bundle(), tools=[pay])
        screen = Screen(Console(file=io.StringIO()))
        signals: Any = NoSignals()
        hooks = ChatHooks(Hooks(None, "/"), screen, signals)
        runner = AnswerRunner(screen, signals, _unasked, PlanMode(), AgentRunOptions())
        conversation = Conversation(agent, {}, store, screen)
        return Talk(agent, conversation, runner, hooks, screen, lambda _: nullcontext(), lambda same: same)

    return make


async def _unasked(_: Any) -> None:
    raise AssertionError("nobody is asked")


async def say(talk: Talk, text: str, folder: Path = Path("/nowhere")) -> None:
    await talk.say(read_message(text, folder), text)


def sent(server: OfflineServer, number: int = -1) -> list[Any]:
    """What the model got: texts, names of calls, and results."""
    items = server.requests[number].body["input"]
    return [item.get("content") or item.get("output") or item.get("name") for item in items]


async def test_a_message_whose_answer_failed_is_sent_again_and_replaced(talk: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("milk")
    with OfflineServer(["Hi.", BUSY, BUSY, "Milk.", "Yes."]) as server:
        chat = talk(server)
        await say(chat, "Hello")
        with pytest.raises(openai.RateLimitError):
            await say(chat, "See @notes.txt", tmp_path)
        (tmp_path / "notes.txt").write_text("something else")
        with pytest.raises(openai.RateLimitError):
            await chat.retry()
        assert await chat.retry() == "finished"
        await say(chat, "Sure?")
    assert sent(server, 3) == sent(server, 1)  # with the file as it was sent then
    texts = [text if isinstance(text, str) else text[0]["text"] for text in sent(server)]
    assert texts == ["Hello", "Hi.", "See @notes.txt", "Milk.", "Sure?"]
    assert [(turn.kind, turn.outcome) for turn in chat.conversation.kept.turns] == [
        ("turn", "finished"),
        ("turn", "failed"),
        ("retry", "finished"),
        ("turn", "finished"),
    ]


async def test_what_tools_have_done_is_neither_hidden_nor_done_again(talk: Any) -> None:
    call = ScriptedToolCall("pay", {"amount": 5}, "call_1")
    with OfflineServer([["I pay it.", call], BUSY, "Paid.", "Yes."]) as server:
        chat = talk(server)
        with pytest.raises(openai.RateLimitError):
            await say(chat, "Pay 5.")
        assert sent_by(chat)[-1] == FAILED
        await chat.retry()
        assert sent(server) == ["Pay 5.", "I pay it.", "pay", "paid 5"]
        await say(chat, "Really?")
    assert paid == [5]
    assert [text if isinstance(text, str) else text[0]["text"] for text in sent(server)] == [
        "Pay 5.",
        "I pay it.",
        "pay",
        "paid 5",
        "Paid.",
        "Really?",
    ]


def sent_by(talk: Talk) -> list[Any]:
    return [item.get("content") for item in talk.conversation.kept.items()]


async def test_the_model_knows_which_call_was_interrupted(talk: Any) -> None:
    async def wait() -> str:
        """Wait, until the person has seen enough."""
        chat._runner.stop()
        await anyio.sleep_forever()
        return "never"

    with OfflineServer([ScriptedToolCall("wait", {}, "call_1"), "I waited."]) as server:
        chat = talk(server)
        chat.change_agent(chat.agent.clone(tools=[wait]))
        assert await chat.say(read_message("Wait.", Path("/nowhere")), "Wait.") == "interrupted"
        await chat.retry()
    assert sent(server) == ["Wait.", "wait", "The call was interrupted. It may have had effects."]


async def test_a_finished_answer_is_made_anew_after_the_calls_of_its_tools(talk: Any) -> None:
    call = ScriptedToolCall("pay", {"amount": 5}, "call_1")
    with OfflineServer([call, "Paid.", "It is paid.", BUSY, "Yes."]) as server:
        chat = talk(server)
        await say(chat, "Pay 5.")
        await chat.retry()
        assert sent(server) == ["Pay 5.", "pay", "paid 5"]
        with pytest.raises(openai.RateLimitError):
            await chat.retry()
        await say(chat, "Sure?")
    # An attempt of which nothing came has not replaced the answer before it.
    assert "It is paid." in json.dumps(sent(server))
    assert '"Paid."' not in json.dumps(sent(server))
    assert paid == [5]
    assert [turn.kind for turn in chat.conversation.kept.turns] == ["turn", "retry", "turn"]


async def test_another_model_gets_the_message_without_what_only_the_first_one_knows(talk: Any) -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    call = ScriptedToolCall("pay", {"amount": 5}, "call_1")
    with OfflineServer(["Hi.", [thought, call], "Paid.", "Done."]) as server:
        chat = talk(server)
        await say(chat, "Hello")
        await say(chat, "Pay 5.")
        chat.change_agent(chat.agent.clone(model=server.bundle("other")))
        await chat.retry()
    assert server.requests[-1].model == "other"
    items = server.requests[-1].body["input"]
    assert [item.get("type", item.get("role")) for item in items] == [
        *("user", "message", "user"),
        *("function_call", "function_call_output"),
    ]
    assert not any("id" in item for item in items)
    assert paid == [5]


async def test_an_answer_that_was_lost_is_tried_again_after_resume(talk: Any, file: Path) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "pay", "arguments": '{"amount": 5}'}
    result = {"type": "function_call_output", "call_id": "c", "output": "paid 5"}
    items = ({"role": "user", "content": "Pay 5."}, {"role": "assistant", "content": "Well,"}, call, result)
    store = Conversations(file)
    kept = store.add(Conversations.begin("office"), ChatTurn(1, "turn", "Pay 5.", items=items))
    assert [item.get("content") for item in kept.items()][-1] == LOST
    with OfflineServer(["Paid.", "Yes."]) as server:
        chat = talk(server, store)
        chat.resume(store.load(kept.id))
        await chat.retry()
        assert sent(server) == ["Pay 5.", "Well,", "pay", "paid 5"]
        chat.resume(store.load(kept.id))
        await say(chat, "Sure?")
    assert sent(server) == ["Pay 5.", "Well,", "pay", "paid 5", "Paid.", "Sure?"]
    assert store.search("pay 5", 9)[0].turns == 3
    store.close()


async def test_if_another_chat_has_gone_on_both_are_kept(talk: Any, file: Path) -> None:
    store, other = Conversations(file), Conversations(file)
    with OfflineServer(["One.", "Two.", "Three."]) as server:
        mine, theirs = talk(server, store), talk(server, other)
        await say(mine, "1?")
        theirs.resume(other.load("last"))
        await say(theirs, "2?")
        await mine.retry()
    assert mine.conversation.kept.id != theirs.conversation.kept.id
    assert [turn.answer for turn in other.load(theirs.conversation.kept.id).turns] == ["One.", "Two."]
    assert [turn.answer for turn in store.load(mine.conversation.kept.id).turns] == ["One.", "Three."]
    store.close()
    other.close()


async def test_it_works_if_the_file_of_conversations_is_lost_meanwhile(talk: Any, file: Path) -> None:
    store = Conversations(file)
    call = ScriptedToolCall("pay", {"amount": 5}, "call_1")

    def break_off(_: Any) -> str:
        store.close()
        return "Paid."

    with OfflineServer(["Hi.", call, break_off, "It is paid."]) as server:
        chat = talk(server, store)
        await say(chat, "Hello")
        await say(chat, "Pay 5.")
        await chat.retry()
    assert "pay" in sent(server)
    assert sent(server)[-1] == "paid 5"
    assert len(sent(server)) == 5


async def test_with_nothing_to_try_again_it_is_an_error(talk: Any) -> None:
    with OfflineServer(["Hi.", "A summary."]) as server:
        chat = talk(server)
        with pytest.raises(ChatCommandError, match=r"E196.*nothing has been said yet; type a message"):
            await chat.retry()
        await say(chat, "Hello")
        await chat.compact()
        with pytest.raises(ChatCommandError, match="the conversation is a summary now"):
            await chat.retry()
        chat.renew()
        with pytest.raises(ChatCommandError, match="nothing has been said yet"):
            await chat.retry()
    assert len(server.requests) == 2


async def test_a_command_that_no_model_has_answered_is_run_again(talk: Any, tmp_path: Path) -> None:
    (tmp_path / "greet.md").write_text("Greet $ARGUMENTS.")
    commands = SlashCommands({"allow": ["greet"]}, files=CommandLoader(tmp_path))
    with OfflineServer(["Fine.", BUSY, "Hello Aiko.", "Fine again."]) as server:
        chat = talk(server)
        chat.change_agent(chat.agent.clone(middleware=[commands]))
        await say(chat, "How are you?")
        with pytest.raises(openai.RateLimitError):
            await chat.command("/greet Aiko")
        await chat.retry()
        assert "Greet Aiko." in json.dumps(server.requests[-1].body["input"])
        chat.renew()
        await say(chat, "How are you?")
        with pytest.raises(UnknownCommandError):
            await chat.command("/rety")
        with pytest.raises(openai.BadRequestError):  # it is the message that is sent again: no reply is left
            await chat.retry()
    assert sent(server)[-1] == "How are you?"


def test_a_command_and_the_result_of_a_tool_are_not_tried_again() -> None:
    asked = {"role": "user", "content": "/look"}
    result = {"type": "function_call_output", "call_id": "c", "output": "seen"}
    with pytest.raises(ChatCommandError, match="the last line was a command"):
        last_turn((ChatTurn(1, "command", "/look", items=(asked, result)),), [])
    with pytest.raises(ChatCommandError, match="the last answer is the result of a tool"):
        last_turn((ChatTurn(1, "turn", "Look.", items=(asked, result), outcome="finished"),), [])


def test_only_what_a_model_wrote_last_is_left_out() -> None:
    asked = {"role": "user", "content": "x"}
    call = {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": "x"}
    hosted = {"type": "web_search_call", "id": "ws", "status": "completed"}
    said = {"type": "message", "id": "m", "role": "assistant", "content": []}
    thought = {"type": "reasoning", "id": "rs", "summary": []}
    assert without_answer([asked]) == [asked]
    assert without_answer([asked, thought, said]) == [asked]
    assert without_answer([asked, thought, call, result, thought, said, said]) == [
        asked,
        thought,
        call,
        result,
    ]
    assert without_answer([asked, thought, hosted, said]) == [asked, thought, hosted]


def test_each_retry_replaces_the_one_before() -> None:
    kinds: tuple[Kind, ...] = ("turn", "turn", "retry", "retry", "turn")
    turns = [
        ChatTurn(number, kind, "x", items=({"role": "user", "content": str(number)},), outcome="finished")
        for number, kind in enumerate(kinds, 1)
    ]
    kept = KeptConversation("id", "office", tuple(turns))
    assert [item["content"] for item in kept.items()] == ["1", "4", "5"]


def failure(status: int, code: str | None = None) -> openai.APIStatusError:
    response = httpx.Response(status, request=httpx.Request("POST", "http://127.0.0.1"))
    return openai.APIStatusError("no", response=response, body={"code": code})


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (failure(429), True),
        (failure(429, "insufficient_quota"), False),
        (failure(503), True),
        (failure(401), False),
        (failure(400), False),
        (openai.APIConnectionError(request=httpx.Request("POST", "http://127.0.0.1")), True),
        (ProviderRequestError(provider="anthropic", status=529, reason="overloaded"), True),
        (ProviderRequestError(provider="anthropic", status=None, reason="connection error"), True),
        (ProviderRequestError(provider="anthropic", status=403, reason="no"), False),
        (httpx.RemoteProtocolError("peer closed connection in mid-answer"), True),
        (MaxTurnsExceeded("Max turns (100) exceeded"), True),
        (ValueError("x"), False),
    ],
)
def test_only_errors_that_can_pass_hint_at_it(error: Exception, expected: bool) -> None:
    assert may_pass(error) is expected


def test_a_wait_is_shown_and_counted_down_and_ctrl_c_ends_it(chat: Any, kept: Any) -> None:
    wait = {"retry-after": "60"}
    again = Reply("slow down", status=429, headers={"retry-after": "2"})
    with OfflineServer([Reply("slow down", status=429, headers=wait), again, "Here I am.", BUSY]) as server:
        terminal = chat(server, columns=100)
        terminal.enter("Hello?", until="assistant waits 60 s: 429, too many requests (try 2 of 3)")
        terminal.type("\x03", until="interrupted")
        terminal.wait_for_prompt()
        terminal.enter("/retry", until="assistant waits 2 s")
        terminal.wait_for("assistant waits 1 s")
        terminal.wait_for("Here I am.")
        shown = terminal.wait_for_prompt()
        assert "waits" not in shown
        assert "> Hello?" in shown
        terminal.enter("And?", until="(/retry tries again)")
    assert sent(server, 1) == sent(server, 2) == ["Hello?"]
    assert [turn.outcome for turn in kept().turns] == ["interrupted", "finished", "failed"]


def test_an_interrupted_answer_is_begun_again(chat: Any, kept: Any) -> None:
    with (
        Held("Once upon ", "...") as held,
        OfflineServer([held.reply, "A story.", Reply("no", status=401)]) as server,
    ):
        terminal = chat(server)
        terminal.ask("/retry", "[E196] Cannot run /retry: nothing has been said yet")
        terminal.enter("Tell one.", until="Once upon")
        terminal.wait_for("is thinking ... 3 s")  # below the text, which it leaves as it is
        assert "Once upon" in terminal.shown
        terminal.type("\x03", until="interrupted")
        terminal.wait_for_prompt()
        terminal.ask("/retry", "A story.")
        shown = terminal.enter("Another?", until="[openai][401] no")
        assert "/retry tries again" not in shown
    assert sent(server, 1) == ["Tell one."]
    assert [turn.kind for turn in kept().turns] == ["turn", "retry", "turn"]
