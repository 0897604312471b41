"""Commands in the background of a chat: what the person and the model learn of them, and when they end."""

from __future__ import annotations

import signal
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kantan_agents import Agent
from kantan_agents.cli.chat.ask_approval import AskAtTerminal
from kantan_agents.cli.chat.commands.jobs import JOBS
from kantan_agents.cli.chat.jobs import Jobs
from kantan_agents.cli.chat.kept_conversation import ChatTurn
from kantan_agents.cli.chat.mentions import ChatMessage
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.terminal.approvals import AskedCall
from kantan_agents.core.items import result_item
from kantan_agents.errors import ChatCommandError, UnknownShellError
from kantan_agents.middleware import PendingCall
from kantan_agents.testing import OfflineServer, ScriptedModel, ScriptedToolCall, assistant_message
from kantan_agents.toolkit.shell import shell_tools
from tests.cli.chat.held import Held
from tests.toolkit.calls import processes_with, until
from tests.toolkit.shell.test_background import asked

SHELL = ("--tools", ".", "--shell", "--sandbox", "off")
HELLO = ChatMessage({"role": "user", "content": "Hello"})


def began(command: str) -> ScriptedToolCall:
    return ScriptedToolCall("Bash", {"command": command, "run_in_background": True})


def wait_for_processes(mark: str, *, are_there: bool = True) -> None:
    end = time.monotonic() + 120
    while bool(processes_with(mark)) != are_there:
        assert time.monotonic() < end


class Shown:
    """Jobs of a conversation, with what the screen shows since the last look."""

    def __init__(self, root: Path, width: int = 200) -> None:
        self._output = StringIO()
        self.jobs = Jobs(Screen(Console(file=self._output, width=width)))
        self._tools = shell_tools(root, sandbox="off", approval=False)

    async def run(self, *steps: Any) -> None:
        model = ScriptedModel([*steps, [assistant_message("Done.")]])
        with self.jobs.shells.used():
            await Agent("a", "x", model=model, tools=self._tools).run_async("Go")

    async def begin(self, *commands: str) -> None:
        await self.run(*(asked("Bash", command=one, run_in_background=True) for one in commands))

    async def ended(self) -> None:
        await until(lambda: all(shell.command.is_over for shell in self.jobs.shells.listed()))

    def taken(self) -> str:
        text = self._output.getvalue()
        self._output.seek(0)
        self._output.truncate()
        return text


@pytest.fixture
async def shown(tmp_path: Path) -> Any:
    shown = Shown(tmp_path)
    yield shown
    await shown.jobs.end()


class TestJobs:
    async def test_there_are_none_at_first(self, shown: Shown) -> None:
        shown.jobs.show_all()
        assert shown.taken() == "No command is in the background.\n"
        shown.jobs.report(0)
        await shown.jobs.end()
        assert shown.taken() == ""
        assert shown.jobs.with_news(HELLO) is HELLO
        with pytest.raises(UnknownShellError, match="No background shell bash_1"):
            await shown.jobs.stop("bash_1")

    async def test_that_some_are_running_is_said_once_for_each_turn(self, shown: Shown, mark: str) -> None:
        await shown.begin(f"sleep {mark}")
        for moment in (1, 1, 2):
            shown.jobs.report(moment)
        assert shown.taken() == "1 command is running in the background: /jobs\n" * 2
        await shown.begin(f"sleep {mark}")
        shown.jobs.report(2)
        assert shown.taken() == "2 commands are running in the background: /jobs\n"
        await shown.jobs.end()
        killed = "is ended with the conversation. The command was ended by signal 9 (SIGKILL). It was: sleep"
        assert shown.taken() == "".join(f"bash_{number} {killed} {mark}\n" for number in (1, 2))

    async def test_an_end_is_said_once_to_the_person_and_once_to_the_model(self, shown: Shown) -> None:
        await shown.begin("exit 3")
        await shown.ended()
        shown.jobs.report(1)
        shown.jobs.report(2)
        assert shown.taken() == "bash_1 has ended. Exit code 3. It was: exit 3\n"
        text, note = shown.jobs.with_news(HELLO).item["content"]
        assert text == {"type": "input_text", "text": "Hello"}
        assert note["text"] == (
            "[A note of the chat, not of the user: bash_1 has ended (exit code 3). BashOutput says more.]"
        )
        assert shown.jobs.with_news(HELLO) is HELLO

    async def test_what_the_model_knows_is_no_news(self, shown: Shown, mark: str) -> None:
        await shown.begin("true", f"sleep {mark}")
        await until(lambda: shown.jobs.shells.listed()[0].command.is_over)
        await shown.run(asked("BashOutput", bash_id="bash_1"), asked("KillShell", shell_id="bash_2"))
        assert shown.jobs.with_news(HELLO) is HELLO

    async def test_no_command_has_the_id_of_one_in_the_conversation_that_goes_on(self, shown: Shown) -> None:
        results = (
            result_item("call_1", "bash_2 was started."),
            result_item("call_2", "bash_10: exit code 0"),
        )
        shown.jobs.go_on_after([ChatTurn(1, "turn", "Go", items=results), ChatTurn(2, "turn", "bash_99")])
        await shown.begin("true")
        shown.jobs.go_on_after([])  # a new conversation does not reuse them either
        await shown.begin("true")
        assert [shell.id for shell in shown.jobs.shells.listed()] == ["bash_11", "bash_12"]

    async def test_a_file_in_the_message_stays_in_it(self, shown: Shown) -> None:
        await shown.begin("true")
        await shown.ended()
        image = {"type": "input_image", "image_url": "data:image/png;base64,eA=="}
        changed = shown.jobs.with_news(
            ChatMessage({"role": "user", "content": [image]}, ("a.png: an image",))
        )
        assert changed.item["content"][0] is image and len(changed.item["content"]) == 2
        assert changed.notes == ("a.png: an image",)

    async def test_a_command_that_the_person_ends_is_news_for_the_model(
        self,
        shown: Shown,
        mark: str,
    ) -> None:
        await shown.begin(f"sleep {mark}")
        await shown.jobs.stop("bash_1")
        assert processes_with(mark) == []
        await shown.jobs.stop("bash_1")
        shown.jobs.report(1)
        said = "bash_1 has ended. The command was ended by signal 9 (SIGKILL). It was: sleep"
        assert shown.taken() == f"{said} {mark}\nbash_1 had already ended.\n"
        assert "bash_1 has ended (stopped by the user)." in str(shown.jobs.with_news(HELLO).item)

    async def test_output_is_shown_by_code_and_the_model_still_gets_it(self, shown: Shown) -> None:
        await shown.begin(": '\u202e'; printf '\\033[2J\\342\\200\\256evil\\n\\007last'")
        await shown.ended()
        shown.jobs.show_all()
        (line,) = shown.taken().splitlines()
        assert line.startswith("bash_1  exit code 0  ") and line.endswith("  | [U+0007]last")
        assert "[U+202E]" in line
        shown.jobs.show("bash_1")
        text = shown.taken()
        assert "\n[U+001B][2J[U+202E]evil\n[U+0007]last\n" in text and ": Exit code 0.\n" in text
        shell = shown.jobs.shells.get("bash_1")
        assert "evil" in shell.command.output.take(is_last=True)

    async def test_of_long_output_the_latest_part_is_shown(self, shown: Shown) -> None:
        await shown.begin("seq 1 100000")
        await shown.ended()
        shown.jobs.show("bash_1")
        text = shown.taken()
        assert "[... 573,895 bytes are not shown ...]\n" in text
        assert text.endswith("\n99999\n100000\n")
        assert len(text) < 20_000

    @pytest.mark.usefixtures("sandbox")
    async def test_a_file_that_may_not_be_made_ends_it_and_the_person_reads_its_name(
        self, tmp_path: Path
    ) -> None:
        shown = Shown(tmp_path)
        shown._tools = shell_tools(tmp_path, sandbox="required", approval=False)
        await shown.begin("echo x > .mcp.json; sleep 1000")
        await shown.ended()
        await shown.jobs.end()  # also if the conversation ends before the next prompt
        said = " ".join(shown.taken().split())
        assert "it made a protected file" in said and ".mcp.json is now .mcp.json.set-aside" in said


@pytest.mark.parametrize("words", ["stop", "bash_1 stop", "stop bash_1 bash_2"])
async def test_words_that_are_no_use_are_explained(words: str) -> None:
    with pytest.raises(ChatCommandError, match=r"type /jobs \[ID \| stop ID\]"):
        await JOBS.run(None, words)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("Bash", '{"command": "ls", "run_in_background": true}', "Bash in the background (no sandbox):"),
        ("Bash", '{"command": "ls", "run_in_background": false}', "Bash (no sandbox):"),
        ("pay", '{"run_in_background": true}', "pay:"),
    ],
)
async def test_the_question_says_in_the_background(tool: str, arguments: str, expected: str) -> None:
    class Answers:
        async def ask(self, _question: str) -> str:
            return "y"

    output, editor = StringIO(), Answers()
    ask = AskAtTerminal(editor, Screen(Console(file=output, width=100)), "no sandbox")  # type: ignore[arg-type]
    await ask(AskedCall(PendingCall("1", tool, arguments, "a")))
    assert output.getvalue().startswith(f"a asks for an approval of {expected}\n")


def test_a_chat_with_a_command_in_the_background(chat: Any, folder: Path, mark: str) -> None:
    line = f"echo ready; until [ -e go ]; do sleep 0.01; done; exit 3 # {mark}"
    with (
        Held("Once upon ", "a time.") as held,
        OfflineServer(
            [began(line), "Started.", held.reply, "I see.", began(f"sleep {mark}"), "Again."]
        ) as server,
    ):
        terminal = chat(server, *SHELL)
        terminal.enter("Start it.", until="asks for an approval of Bash in the background (no sandbox):")
        terminal.wait_for("[y]es")
        terminal.ask("y", "1 command is running in the background: /jobs")
        terminal.enter("Tell a story.", until="Once upon")
        terminal.type("\x03", until="1 command is running in the background: /jobs", count=2)
        terminal.wait_for_prompt()
        terminal.ask("/jobs", "bash_1  running")
        while "\nready\n" not in terminal.shown:  # its shell needs time to start
            terminal.enter("/jobs bash_1", until=" Running.", count=terminal.shown.count(" Running.") + 1)
            terminal.wait_for_prompt()
        (folder / "go").touch()
        terminal.ask("/jobs bash_2", "[E169] No background shell bash_2 (available: bash_1)")
        while "bash_1 has ended" not in terminal.shown:
            terminal.enter("/model", until="model: ", count=terminal.shown.count("model: ") + 1)
            terminal.wait_for_prompt()
        terminal.ask("And?", "I see.")
        assert "bash_1 has ended (exit code 3)." in str(server.requests[3].body["input"][-1]["content"])
        terminal.enter("Again.", until="[y]es", count=2)
        terminal.enter("y", until="1 command is running in the background: /jobs", count=3)
        terminal.wait_for_prompt()
        wait_for_processes(mark)
        terminal.enter("/new", until="bash_2 is ended with the conversation.")
        terminal.wait_for("A new conversation.")
        assert processes_with(mark) == []


@pytest.mark.parametrize("how", ["exit", "hang up", "terminate", "kill"])
def test_nothing_is_left_of_it_when_the_chat_ends(chat: Any, mark: str, how: str) -> None:
    with OfflineServer(
        [began(f"trap '' TERM HUP; setsid sleep {mark} & sleep {mark}"), "Started."]
    ) as server:
        terminal = chat(server, *SHELL, "--yes", "Bash", "--no-save")
        terminal.ask("Start it.", "1 command is running in the background")
        wait_for_processes(mark)
        if how == "exit":
            terminal.enter("/exit")
            assert terminal.wait_for_end() == 0
            assert "bash_1 is ended with the conversation." in terminal.shown
        elif how == "hang up":
            terminal.hang_up()
            assert terminal.program.wait(60) == 128 + signal.SIGHUP
        elif how == "terminate":
            terminal.program.terminate()
            assert terminal.wait_for_end() == 128 + signal.SIGTERM
            assert "bash_1 is ended with the conversation." in terminal.shown
        else:
            terminal.program.kill()
            terminal.wait_for_end()
            wait_for_processes(mark, are_there=False)
        assert processes_with(mark) == []


FILE = "---\nname: runner\ndescription: Runs.\ntools: Bash, BashOutput, KillShell\n---\nRun.\n"


@pytest.mark.parametrize("agent", [(), ("--agent", "runner.md")])
def test_in_a_pipe_it_ends_with_the_last_line(
    lines: Any, folder: Path, mark: str, agent: tuple[str, ...]
) -> None:
    (folder / "runner.md").write_text(FILE)
    replies = [
        began(f"echo one; sleep {mark}"),
        "Started.",
        ScriptedToolCall("BashOutput", {"bash_id": "bash_1"}),
        "Yes.",
    ]
    with OfflineServer(replies) as server:
        ended = lines(server, b"Start it.\nIs it running?\n", *agent, *SHELL, "--yes", "Bash")
    assert ended.stdout == "Started.\nYes.\n"
    assert "bash_1 is ended with the conversation." in ended.stderr
    assert "Running." in server.requests[3].body["input"][-1]["output"]
