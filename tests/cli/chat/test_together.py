"""What people combine in a chat: ``/undo``, ``/retry``, plan mode, hooks and commands in the background."""

from __future__ import annotations

import re
from contextlib import ExitStack
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from kantan_agents.cli.chat.chat_hooks import ChatHooks
from kantan_agents.cli.chat.commands.plan import PLAN
from kantan_agents.cli.chat.context_parts import parts_before, parts_of
from kantan_agents.cli.chat.ending import ChatEnding
from kantan_agents.cli.chat.jobs import Jobs
from kantan_agents.cli.chat.mentions import NOTE, ChatMessage
from kantan_agents.cli.chat.plan_mode import PlanMode
from kantan_agents.cli.chat.progress import portable
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.hooks.hook import Event, Hook
from kantan_agents.cli.hooks.hooks import Hooks
from kantan_agents.cli.hooks.read_hooks import HooksFile
from kantan_agents.core.interception import layers_of
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from tests.cli.chat.test_plan_in_chat import FILES, write
from tests.cli.chat.test_plan_mode import Led, agent_of, made, propose, root, turn  # noqa: F401
from tests.cli.chat.test_plan_mode import write as writing
from tests.cli.chat.test_retry import BUSY, NoSignals, paid, say, sent, store, talk  # noqa: F401

UNDONE = "[The user has undone what you did to a.txt.]"


def hooks_of(folder: Path, event: Event, command: str) -> Hooks:
    """Return hooks of one command, which starts in a folder."""
    hook = Hook("hooks", event, re.compile(""), command, 10)
    return Hooks(HooksFile(folder / "hooks.json", folder, (hook,)), str(folder))


class TestRetryAfterUndo:
    """An answer that was taken back is not made as if its changes were still there."""

    async def test_the_model_knows_what_was_undone_and_answers_anew(self, talk: Any) -> None:  # noqa: F811
        call = ScriptedToolCall("pay", {"amount": 5}, "call_1")
        replies = ["Hi.", call, "Paid.", BUSY, "It is paid.", "Once more.", "Yes."]
        with OfflineServer(replies) as server:
            chat = talk(server)
            await say(chat, "Hello")
            await say(chat, "Pay 5.")
            await chat.conversation.note("/undo", UNDONE)
            await chat.conversation.note("/undo", "[Not undone after all: b.txt]")
            with pytest.raises(Exception, match="slow down"):
                await chat.retry()
            for _ in range(2):
                assert await chat.retry() == "finished"
                done = ["Pay 5.", "pay", "paid 5", UNDONE, "[Not undone after all: b.txt]"]
                assert texts(sent(server)) == ["Hello", "Hi.", *done, again()]
            await say(chat, "Sure?")
        assert texts(sent(server)) == ["Hello", "Hi.", *done, again(), "Once more.", "Sure?"]
        assert paid == [5]
        kinds = [one.kind for one in chat.conversation.kept.turns]
        assert kinds == ["turn", "turn", "note", "note", "retry", "retry", "turn"]
        assert portable(chat.conversation.kept.items()) == portable(
            list(chat.conversation.items)
        )  # as after `/resume`

    def test_a_person_undoes_and_retries_also_after_resume(self, chat: Any, folder: Path) -> None:
        with OfflineServer([write("a.md"), "Written.", "Better."]) as server:
            terminal = chat(server, *FILES, "--yes", "Write")
            terminal.ask("Write.", "Written.")
            terminal.enter("/undo", until="Put back?")
            terminal.ask("y", "1 file put back.")
            terminal = chat(server, *FILES, "--resume", "last")
            assert "> Write.\nWritten.\n" in terminal.shown
            terminal.enter("/retry", until="Better.")
            assert list(folder.iterdir()) == []
        assert "a.md (removed)" in texts(sent(server))[-2]


def texts(items: list[Any]) -> list[str]:
    return [one if isinstance(one, str) else " ".join(part["text"] for part in one) for one in items]


def again() -> str:
    return NOTE.format("The user wants another answer.")


class TestHooksThatBlock:
    """What a hook has blocked is not sent, is not lost, and is not taken for something else."""

    @pytest.fixture
    def guarded(self, talk: Any, tmp_path: Path) -> Any:  # noqa: F811
        def make(server: OfflineServer) -> Any:
            chat = talk(server)
            hooks = hooks_of(tmp_path, "UserPromptSubmit", "grep -q secret && [ ! -e off ] && exit 2; true")
            signals: Any = NoSignals()
            chat._hooks = ChatHooks(hooks, chat._screen, signals)
            return chat

        return make

    async def test_a_blocked_message_is_sent_by_retry_and_takes_no_answer_away(
        self, guarded: Any, tmp_path: Path
    ) -> None:
        with OfflineServer(["Hi.", "Now."]) as server:
            chat = guarded(server)
            await chat.command("/nothing secret")
            assert chat.conversation.kept.turns == ()
            await say(chat, "Hello")
            news = ["bash_1 has ended."]
            chat._with_news = lambda message: message.with_text(news.pop())
            assert await chat.say(ChatMessage({"role": "user", "content": "secret"}), "secret") == "failed"
            assert await chat.retry() == "failed"
            (tmp_path / "off").touch()
            assert await chat.retry() == "finished"
        assert texts(sent(server)) == ["Hello", "Hi.", "secret bash_1 has ended."]
        assert [(one.kind, one.answer) for one in chat.conversation.kept.turns] == [
            ("turn", "Hi."),
            ("turn", "Now."),
        ]

    async def test_a_hook_blocks_a_plan_before_a_person_sees_it(self, root: Path, tmp_path: Path) -> None:  # noqa: F811
        mode = PlanMode(is_on=True)
        led = Led(mode, "y")
        mode.layers = mode.layers.inside(layers_of([hooks_of(tmp_path, "PreToolUse", "echo no >&2; exit 2")]))
        agent = agent_of(root, turn(propose("Write(**)")), turn(writing()), approval=False)
        await led.say(agent)
        assert led.outputs[0] == "A hook of the user blocks this call: no"
        assert "E200" in led.outputs[1]
        assert "proposes" not in led.shown and mode.is_on
        assert made(root) == ["a.txt"]

    async def test_no_hook_runs_for_a_call_that_plan_mode_refuses(self, root: Path, tmp_path: Path) -> None:  # noqa: F811
        mode = PlanMode(is_on=True, named=["Write(src/**)"])
        led = Led(mode)
        mode.layers = mode.layers.inside(layers_of([hooks_of(tmp_path, "PreToolUse", "cat >> seen")]))
        calls = turn(writing("b.txt"), writing("src/a.py"))
        await led.say(agent_of(root, calls, approval=False))
        assert made(root) == ["a.py", "a.txt"]
        (seen,) = (tmp_path / "seen").read_text().splitlines()
        assert "src/a.py" in seen


async def test_a_signal_ends_what_was_begun_last_in_whatever_order_it_ends() -> None:
    ended: list[str] = []
    ending = ChatEnding(is_interactive=True)
    try:
        with ending.interrupting(lambda: ended.append("run")):
            asking, hook = ExitStack(), ExitStack()
            asking.enter_context(ending.interrupting(lambda: ended.append("question")))
            hook.enter_context(ending.interrupting(lambda: ended.append("hook")))
            ending.interrupt()
            asking.close()
            ending.interrupt()
            hook.close()
            ending.interrupt()
        ending.interrupt()
    finally:
        ending.restore()
    assert ended == ["hook", "hook", "run"]


async def test_plan_mode_says_which_commands_go_on() -> None:
    output = StringIO()
    screen = Screen(Console(file=output, width=100))
    jobs = Jobs(screen)
    running: Any = SimpleNamespace(id="bash_1", command=SimpleNamespace(is_over=False))
    jobs.shells.listed = lambda: [running]  # type: ignore[method-assign]
    chat: Any = SimpleNamespace(jobs=jobs, screen=screen, plan=PlanMode())
    jobs.report(1)
    await PLAN.run(chat, "")
    jobs.report(1)
    assert output.getvalue().count("1 command is running in the background: /jobs\n") == 2


async def test_context_counts_the_tool_for_plans_and_takes_no_note_for_a_file(root: Path) -> None:  # noqa: F811
    message = ChatMessage({"role": "user", "content": "Hi"}).with_text(NOTE.format("bash_1 has ended."))
    assert {part.kind for part in parts_of([message.item])} == {"your messages"}
    offered = PlanMode(is_on=True).offered
    assert offered is not None and PlanMode().offered is None
    parts = await parts_before(agent_of(root), {}, {}, [offered])
    assert [part.tokens > 100 for part in parts if part.origin == "ExitPlanMode"] == [True]
