"""The list of steps in a chat: what is shown of it while it changes, and what a later chat knows of it."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kantan_agents import Agent
from kantan_agents.cli.chat.answer_view import AnswerView
from kantan_agents.cli.chat.kept_conversation import ChatTurn, KeptConversation
from kantan_agents.cli.chat.progress import INTERRUPTED
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.chat.steps import StepLists, give_steps, show_steps, steps_of
from kantan_agents.core.events import ToolCallDenied, ToolCallFinished, ToolCallStarted
from kantan_agents.testing import OfflineServer, Reply, ScriptedToolCall
from kantan_agents.toolkit.todo_write import Todo, todo_write

READ = {"content": "Read the code", "status": "pending", "activeForm": "Reading the code"}
TEST = {"content": "Run the tests", "status": "pending"}
REPORT = {"content": "Report", "status": "pending"}
MOMENT: dict[str, Any] = {"sequence": 1, "time": datetime(2026, 11, 1, tzinfo=timezone.utc)}


def begun(step: Todo) -> Todo:
    return {**step, "status": "in_progress"}


def done(step: Todo) -> Todo:
    return {**step, "status": "completed"}


def result(steps: list[Todo]) -> str:
    if not steps:
        return "The list is empty."
    return f"{sum(one['status'] == 'completed' for one in steps)} of {len(steps)} steps are completed:\n..."


class Shown:
    """What a terminal shows of calls: ``shown(steps)`` makes one and returns the new lines."""

    def __init__(self, steps: list[Todo] | None = None, **size: Any) -> None:
        self.output = StringIO()
        console = Console(file=self.output, **{"width": 80, "markup": False, "highlight": False, **size})
        self.screen = Screen(console)
        self.view = AnswerView(self.screen, lambda *_: None, StepLists(steps or ()))

    def __call__(self, steps: Any, *, run: str = "main", agent: str = "a", **change: Any) -> list[str]:
        values = {
            **MOMENT,
            "run_id": run,
            "parent_run_id": None if run == "main" else "main",
            "agent": agent,
            "call_id": "1",
            "tool": "TodoWrite",
        }
        before = len(self.output.getvalue())
        started = ToolCallStarted(**{**values, "arguments": json.dumps({"todos": steps})})
        self.view.show(started, "main")
        output = change.pop("output") if "output" in change else result(steps)
        ended = {"seconds": 0.0, "outcome": "finished", "output": output, **change}
        self.view.show(ToolCallFinished(**{**values, **ended}), "main")
        return self.output.getvalue()[before:].splitlines()


def test_the_list_is_shown_once_and_then_what_has_changed() -> None:
    shown = Shown()
    assert shown([begun(READ), TEST, REPORT]) == [
        "* TodoWrite 0 ms  0 of 3 steps completed",
        "  [>] Reading the code",
        "  [ ] Run the tests",
        "  [ ] Report",
    ]
    assert shown([done(READ), begun(TEST), REPORT]) == [
        "* TodoWrite 0 ms  1 of 3 steps completed",
        "  [x] Read the code",
        "  [>] Run the tests",
    ]
    assert shown([done(READ), begun(TEST), REPORT]) == ["* TodoWrite 0 ms  1 of 3 steps completed"]
    assert shown([done(TEST)])[0] == "* TodoWrite 0 ms  1 of 1 step completed, 2 removed"
    assert shown([]) == ["* TodoWrite 0 ms  no steps, 1 removed"]


def test_the_list_of_the_turns_before_is_known() -> None:
    assert Shown([READ, TEST])([done(READ), TEST])[1:] == ["  [x] Read the code"]


def test_many_updates_stay_short() -> None:
    steps: list[Todo] = [{"content": f"Step {number}", "status": "pending"} for number in range(10)]
    shown = Shown()
    shown(steps)
    for number in range(10):
        lines = shown([*map(done, steps[:number]), begun(steps[number]), *steps[number + 1 :]])
        assert len(lines) <= 3


def test_what_is_done_is_dimmed_and_the_step_in_progress_is_bold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    shown = Shown(force_terminal=True, color_system="standard")
    first, second, third = shown([done(READ), begun(TEST), REPORT])[-3:]
    assert first == "\x1b[2m  [x] Read the code\x1b[0m"
    assert second == "\x1b[1m  [>] Run the tests\x1b[0m"
    assert third == "  [ ] Report"


def test_the_status_line_names_the_step_in_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    shown = Shown([begun({**READ, "activeForm": f"Reading\x1b[31m {'x' * 999}"})], force_terminal=True)
    shown({}, tool="Bash", run="main")
    assert "Reading[U+001B][31m xxx" in shown.output.getvalue()
    assert "...: TodoWrite ..." in shown.output.getvalue()


def test_lists_of_subagents_are_apart() -> None:
    shown = Shown()
    shown([begun(READ), TEST])
    assert shown([REPORT], run="one", agent="helper") == [
        "* helper: TodoWrite 0 ms  0 of 1 step completed",
        "      [ ] Report",
    ]
    assert shown([READ], run="two", agent="helper")[1:] == ["      [ ] Read the code"]
    assert shown([done(REPORT)], run="one", agent="helper")[1:] == ["      [x] Report"]
    assert shown([begun(READ), done(TEST)])[1:] == ["  [x] Run the tests"]


def test_long_and_hostile_steps_are_text() -> None:
    content = "[bold]\x1b[2J\u202e\n\r" + "x" * 980
    steps = [{"content": content, "status": "pending"} for _ in range(100)]
    shown = Shown()
    lines = shown(steps)
    assert len(lines) == 12
    assert lines[1].startswith("  [ ] [bold][U+001B][2J[U+202E] xxx") and len(lines[1]) == 80
    assert lines[-1] == "  ... and 90 more"
    show_steps(steps, shown.screen)
    listed = shown.output.getvalue().splitlines()[len(lines) :]
    assert len(listed) == 101 and all(len(line) <= 80 for line in listed)


@pytest.mark.parametrize(
    "change",
    [
        {"output": "[E10] Tool arguments are wrong"},
        {"outcome": "failed", "output": None, "message": "no"},
        {"tool": "TodoRead"},
        {"output": "1 of 9 steps are completed:"},
    ],
)
def test_a_call_that_has_written_no_list_is_shown_as_any_other(change: dict[str, Any]) -> None:
    shown = Shown()
    lines = shown([READ], **change)
    assert len(lines) == 1 and "content" in lines[0]
    assert shown([TEST])[1:] == ["  [ ] Run the tests"]


@pytest.mark.parametrize("todos", ["x", None, [{"content": 3, "status": "pending"}], [{"content": "x"}], [3]])
def test_arguments_that_no_list_can_be_are_shown_as_any_other(todos: Any) -> None:
    shown = Shown()
    assert len(shown(todos, output="0 of 1 steps are completed:")) == 1


def test_a_refused_call_has_written_nothing() -> None:
    values: dict[str, Any] = {**MOMENT, "run_id": "r", "parent_run_id": None, "agent": "a", "seconds": 0.0}
    refused = ToolCallDenied(**values, call_id="1", tool="TodoWrite", code="E8", message="0 of 1")
    assert StepLists().see(refused, json.dumps({"todos": [READ]})) is None


def call(steps: Any, number: int, output: str | None = None) -> list[dict[str, Any]]:
    called = {"type": "function_call", "name": "TodoWrite", "call_id": str(number)}
    text = result(steps) if output is None else output
    return [
        {**called, "arguments": json.dumps({"todos": steps})},
        {"type": "function_call_output", "call_id": str(number), "output": text},
    ]


def turn(number: int, *items: dict[str, Any], **values: Any) -> ChatTurn:
    return ChatTurn(number, "turn", "?", items=items, **{"outcome": "finished", **values})


def test_a_conversation_knows_the_list_that_was_accepted_last() -> None:
    assert steps_of(KeptConversation("id", "a", (turn(1, {"role": "user", "content": "?"}),))) is None
    turns = (
        turn(1, *call([READ], 1), *call([TEST], 2)),
        turn(2, *call([REPORT, REPORT], 1, "[E10] wrong"), {"role": "assistant", "content": "?"}),
        ChatTurn(3, "summary", "/compact", items=({"role": "user", "content": "A summary"},)),
        turn(4, call([REPORT], 9)[0]),
    )
    assert steps_of(KeptConversation("id", "a", turns)) == [TEST]
    interrupted = turn(5, *call([], 1), {"role": "assistant", "content": INTERRUPTED}, outcome="interrupted")
    assert steps_of(KeptConversation("id", "a", (*turns, interrupted))) == []


def test_the_list_is_given_to_the_agent_under_its_key() -> None:
    kept = KeptConversation("id", "a", (turn(1, *call([READ], 1)),))
    context: dict[str, Any] = {}
    give_steps(kept, Agent("a", "x"), context)
    assert context == {}
    give_steps(kept, Agent("a", "x", tools=[todo_write(key="plan")]), context)
    assert context == {"plan": [READ]}


PLANNER = """
from kantan_agents import Agent, AgentDefinition
from kantan_agents.agent.delegation import task_tool
from kantan_agents.toolkit.todo_write import todo_write

helper = AgentDefinition(name="helper", description="Helps.", system_prompt="Help.")
agent = Agent(
    "planner", "Now: {{ $ctx.plan.0.content }}", tools=[todo_write(key="plan"), task_tool([helper])]
)
"""


def writing(*steps: Todo) -> ScriptedToolCall:
    return ScriptedToolCall("TodoWrite", {"todos": list(steps)})


def test_after_an_answer_that_fails_the_agent_has_the_list_that_its_model_knows(
    lines: Any, folder: Path
) -> None:
    (folder / "planner.py").write_text(PLANNER)
    replies = [writing(begun(READ), TEST), Reply("overloaded", status=400), "Fine."]
    with OfflineServer(replies) as server:
        ended = lines(server, b"Plan.\nAnd?\n", "--agent", "planner:agent")
    assert "[>] Reading the code" in ended.stderr and ended.stdout == "Fine.\n"
    assert server.requests[-1].body["instructions"] == "Now: Read the code"


def test_the_list_is_seen_and_resumed(chat: Any, folder: Path) -> None:
    (folder / "planner.py").write_text(PLANNER)
    task = ScriptedToolCall("Task", {"description": "x", "prompt": "Hi", "subagent_type": "helper"})
    replies = [writing(begun(READ), TEST), task, writing(begun(REPORT)), "Hi.", "Planned.", "Yes.", "Also."]
    with OfflineServer(replies) as server:
        terminal = chat(server, "--agent", "planner:agent")
        terminal.enter("/todos", until="no steps")
        shown = terminal.enter("Plan.", until="Planned.")
        assert "  [>] Reading the code\n  [ ] Run the tests\n" in shown
        assert "* helper: TodoWrite" in shown and "\n      [>] Report\n" in shown
        terminal.wait_for_prompt()
        terminal.enter("/todos")
        assert "[>] Report" not in terminal.wait_for("0 of 2 steps completed", 2).rpartition("/todos")[2]
        terminal.enter("/exit")
        assert terminal.wait_for_end() == 0
        terminal = chat(server, "--agent", "planner:agent", "--resume", "last")
        assert "0 of 2 steps completed\n  [>] Reading the code\n  [ ] Run the tests\n" in terminal.shown
        terminal.enter("And?", until="Yes.")
        terminal.enter("/todos", until="  [>] Reading the code", count=2)
        terminal.enter("/new", until="A new conversation.")
        terminal.enter("/todos", until="no steps")
        terminal.enter("And now?", until="Also.")
    instructions = [request.body["instructions"] for request in server.requests]
    assert instructions[-2:] == ["Now: Read the code", "Now: "]
