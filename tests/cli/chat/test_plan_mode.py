"""Plan mode: whatever a model calls, nothing but reading happens until a person has agreed to a plan."""

from __future__ import annotations

import asyncio
from io import StringIO
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from agents import Agent as PlainAgent
from agents import FunctionTool, WebSearchTool, function_tool
from rich.console import Console

from kantan_agents import Agent, AgentDefinition, SlashCommands, task_tool
from kantan_agents.agent.delegation.approvals import answer_approvals
from kantan_agents.cli.chat.plan_mode import PlanMode
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.terminal.approvals import ApprovalAnswer, AskedApprovals, AskedCall
from kantan_agents.core.interception import inherited_layers
from kantan_agents.errors import InvalidOptionError
from kantan_agents.middleware import Deadline
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.toolkit import toolkit
from kantan_agents.toolkit.todo_write import todo_write
from tests.tools.conftest import Executed
from tests.tools.test_guard import KINDS, kinds
from tests.tools.test_server_names import Server

SAID = [assistant_message("Done.")]
HELPER = AgentDefinition(name="helper", description="Helps.", system_prompt="Help.")
ASK_HELPER = ("Task", {"description": "d", "prompt": "p", "subagent_type": "helper"})


def write(path: str = "src/a.py", text: str = "new\n") -> tuple[str, Any]:
    return "Write", {"file_path": path, "content": text}


def propose(*permissions: str, plan: str = "Write it.") -> tuple[str, Any]:
    return "ExitPlanMode", {"plan": plan, "permissions": list(permissions)}


def shell(command: str) -> tuple[str, Any]:
    return "Bash", {"command": command, "description": "Run it."}


def turn(*calls: tuple[str, Any]) -> list[Any]:
    return [function_call(name, given, call_id=f"{name}{n}") for n, (name, given) in enumerate(calls)]


class Keyboard:
    """Gives what would be typed; without anything left, Ctrl-C."""

    def __init__(self, *typed: str) -> None:
        self.typed = list(typed)

    async def ask(self, question: str) -> str:
        await anyio.lowlevel.checkpoint()
        if not self.typed:
            raise KeyboardInterrupt
        return self.typed.pop(0)


class Led:
    """A conversation as ``Talk`` leads it, with what a person types and sees."""

    def __init__(self, mode: PlanMode, *typed: str, yes: tuple[str, ...] = (), pipe: bool = False) -> None:
        self.mode = mode
        self.keyboard = Keyboard(*typed)
        editor: Any = None if pipe else self.keyboard
        self.output = StringIO()
        self.asked: list[str] = []
        self.answer = "yes"
        self.stopped = False
        screen = Screen(Console(file=self.output, width=100))
        mode.ask_at(editor, screen, self._stop, "no sandbox")
        self.approvals = AskedApprovals(self._ask, self._stop, yes, mode.decide)

    def _stop(self) -> None:
        self.stopped = True
        self.task.cancel()

    async def _ask(self, asked: AskedCall) -> ApprovalAnswer:
        self.asked.append(asked.call.tool)
        decision: Any = self.answer
        return ApprovalAnswer(decision)

    @property
    def shown(self) -> str:
        return self.output.getvalue()

    async def say(self, agent: Agent[Any], given: Any = "Go") -> Any:
        """Run an agent to its end, and return its final output."""

        async def lead() -> Any:
            inherited_layers.set(self.mode.layers)
            answer_approvals.set(self.approvals.decide_inside)
            context = await agent.run_async(given)
            while (state := await self.approvals.decide(context["result"])) is not None:
                context = await agent.run_async(state)
            return context["result"]

        self.task = asyncio.get_running_loop().create_task(lead())
        result = await self.task
        self.outputs = [str(one.output) for one in result.new_items if one.type == "tool_call_output_item"]
        return result.final_output


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    (made / "src").mkdir(parents=True)
    (made / "a.txt").write_text("one\n")
    return made


def agent_of(root: Path, *turns: list[Any], approval: bool = True, **options: Any) -> Agent[Any]:
    """Return an agent with the tools for files and commands, and a model that makes these calls."""
    tools = toolkit(root, write=True, shell=True, network=True, approval=approval)
    more = options.pop("tools", [])
    model = options.pop("model", None) or ScriptedModel([*turns, SAID])
    return Agent("writer", "Write.", model=model, tools=[*tools, todo_write(), *more], **options)


def offered(agent: Agent[Any], number: int = 0) -> list[str]:
    """The tools that the model was shown in a call."""
    model: Any = agent.given.model
    return [tool.name for tool in model.calls[number].tools]


def made(root: Path) -> list[str]:
    """The files below a folder."""
    return sorted(one.name for one in root.rglob("*") if one.is_file())


CHANGING = [
    write(),
    ("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"}),
    ("MultiEdit", {"file_path": "a.txt", "edits": [{"old_string": "one", "new_string": "two"}]}),
    shell("touch src/a.py"),
    ("KillShell", {"shell_id": "1"}),
    ("WebFetch", {"url": "https://127.0.0.1/secret", "prompt": "Read."}),
]


@pytest.mark.parametrize("call", CHANGING, ids=lambda call: call[0])
@pytest.mark.parametrize("approval", [True, False])
async def test_no_option_permits_a_change(root: Path, call: Any, approval: bool) -> None:
    led = Led(PlanMode(is_on=True), yes=(call[0],))
    await led.say(agent_of(root, turn(call), approval=approval))
    assert "[E200]" in led.outputs[0] and "propose a plan with ExitPlanMode" in led.outputs[0]
    assert (root / "a.txt").read_text() == "one\n" and not (root / "src/a.py").exists()
    assert led.asked == []
    waits = approval and call[0] != "KillShell"
    assert (f"! {call[0]} refused: plan mode" in led.shown) is waits


async def test_reading_is_permitted(root: Path) -> None:
    calls = [
        ("Read", {"file_path": "a.txt"}),
        ("Grep", {"pattern": "one"}),
        ("Glob", {"pattern": "*"}),
        ("LS", {}),
        ("TodoWrite", {"todos": [{"content": "Read.", "status": "pending"}]}),
        ("BashOutput", {"bash_id": "1"}),
    ]
    led = Led(PlanMode(is_on=True))
    await led.say(agent_of(root, turn(*calls)))
    assert not [one for one in led.outputs if "E200" in one]
    assert "one" in led.outputs[0] and "a.txt" in led.outputs[1] and "0 of 1 steps" in led.outputs[4]


async def test_tools_of_modules_and_servers_are_refused_whatever_their_names_say(root: Path) -> None:
    called: list[str] = []

    def Read(file_path: str) -> str:
        """Read a file, it says."""
        called.append(file_path)
        return "read"

    server = Server("docs", "Grep", "look")
    calls = turn(("Read", {"file_path": "a"}), ("Grep", {"value": "x"}), ("look", {"value": "x"}))
    agent = Agent("a", "x", model=ScriptedModel([calls, SAID]), tools=[Read], mcp_servers=[server])
    led = Led(PlanMode(is_on=True), yes=("Read", "mcp__docs"))
    await led.say(agent)
    assert (called, server.called) == ([], [])
    assert [("[E200]" in one) for one in led.outputs] == [True] * 3


async def test_what_the_person_has_named_is_permitted_and_asked_about_as_usual(root: Path) -> None:
    server = Server("docs", "Bash", "look", "pay")

    @function_tool
    def look(what: str) -> str:
        """Look at something."""
        return f"{what}: seen"

    agent = agent_of(
        root,
        turn(shell("git log -1"), shell("git log; touch src/a.py"), shell("touch src/a.py")),
        turn(("pay", {"value": "1"}), ("mcp_docs__look", {"value": "2"}), ("look", {"what": "3"})),
        tools=[look],
        mcp_servers=[server],
    )
    led = Led(PlanMode(is_on=True, named=["Bash(git log:*)", "mcp__docs__pay"]))
    await led.say(agent)
    assert led.asked == ["Bash"]
    assert not (root / "src/a.py").exists()
    assert server.called == ["pay"]
    assert sum("[E200]" in one for one in led.outputs) == 4 - ("mcp_docs__look" not in offered(agent, 1))


@pytest.mark.parametrize("named", ["look", "Bash(git log:*)", "mcp__other", "mcp__docs__l*"])
async def test_no_name_that_a_server_has_chosen_is_one_that_the_person_has_named(named: str) -> None:
    server = Server("docs", "look", "Bash")
    calls = turn(("look", {"value": "git log"}), ("Bash", {"value": "git log", "command": "git log"}))
    agent = Agent("a", "x", model=ScriptedModel([calls, SAID]), mcp_servers=[server])
    await Led(PlanMode(is_on=True, named=[named])).say(agent)
    assert server.called == []


async def test_a_plan_names_a_tool_of_a_server_by_its_full_name() -> None:
    server = Server("docs", "look", "mcp__pay__all")
    plans = [turn(propose(name)) for name in ("look", "mcp__docs", "mcp__docs__*", "mcp__pay__all")]
    model = ScriptedModel([*plans, turn(propose("mcp__docs__look")), SAID])
    led = Led(PlanMode(is_on=True), "y")
    await led.say(Agent("a", "x", model=model, mcp_servers=[server]))
    assert [("there is no tool" in one) for one in led.outputs] == [True] * 4 + [False]
    assert led.shown.count("proposes a plan:") == 1
    assert "  mcp__docs__look: every call of mcp__docs__look" in led.shown


async def test_a_wrong_name_of_a_tool_is_an_error() -> None:
    with pytest.raises(InvalidOptionError, match="--plan-tool"):
        PlanMode(named=["Bash(git *)"])


async def test_subagents_only_read_and_have_no_plan_of_their_own(root: Path) -> None:
    turns = [turn(ASK_HELPER), turn(write(), propose("Write(**)")), [assistant_message("I may not.")], SAID]
    agent = agent_of(root, model=ScriptedModel(turns), tools=[task_tool([HELPER])])
    led = Led(PlanMode(is_on=True), "y")
    await led.say(agent)
    assert led.outputs == ["I may not."]
    assert "ExitPlanMode" in offered(agent) and "ExitPlanMode" not in offered(agent, 1)
    assert not (root / "src/a.py").exists() and led.mode.is_on
    model: Any = agent.given.model
    outputs = [one["output"] for one in model.calls[2].input if "output" in one]
    assert any("answer with what should be changed" in one for one in outputs)


async def test_a_subagent_inside_of_a_deadline_only_reads(root: Path) -> None:
    turns = [turn(ASK_HELPER), turn(write()), [assistant_message("I may not.")], SAID]
    agent = agent_of(
        root,
        approval=False,
        model=ScriptedModel(turns),
        tools=[task_tool([HELPER], middleware=[])],
        middleware=[Deadline(60)],
    )
    await Led(PlanMode(is_on=True)).say(agent)
    assert not (root / "src/a.py").exists()


@pytest.mark.parametrize("kind", [Agent, PlainAgent])
async def test_an_agent_after_a_hand_off_only_reads_and_may_propose_a_plan(root: Path, kind: Any) -> None:
    model = ScriptedModel([turn(("transfer_to_other", {})), turn(write()), turn(propose()), SAID])
    options = {"instructions": "x", "model": model, "tools": toolkit(root, write=True, approval=False)}
    agent = Agent("first", "x", model=model, handoffs=[kind(name="other", **options)])
    led = Led(PlanMode(is_on=True), "y")
    await led.say(agent)
    assert any("[E200]" in one for one in led.outputs)
    assert not (root / "src/a.py").exists()
    assert "other proposes a plan:" in led.shown


async def test_an_agent_as_a_tool_is_refused(root: Path) -> None:
    model = ScriptedModel([turn(("other", {"input": "x"})), SAID])
    other = PlainAgent(name="other", instructions="x", model=ScriptedModel([]))
    agent = Agent("a", "x", model=model, tools=[other.as_tool("other", "Do it.")])
    led = Led(PlanMode(is_on=True))
    await led.say(agent)
    assert "[E200]" in led.outputs[0]


async def test_an_agent_as_a_tool_that_the_person_has_named_only_reads(root: Path) -> None:
    inner = ScriptedModel([turn(write()), SAID])
    tools: Any = toolkit(root, write=True, approval=False)
    other = PlainAgent(name="other", instructions="x", model=inner, tools=tools)
    model = ScriptedModel([turn(("other", {"input": "x"})), SAID])
    agent = Agent("a", "x", model=model, tools=[other.as_tool("other", "Do it.")])
    await Led(PlanMode(is_on=True, named=["other"])).say(agent)
    assert "ExitPlanMode" not in [tool.name for tool in inner.calls[0].tools]
    assert not (root / "src/a.py").exists()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after_hand_off", [True, False])
async def test_no_kind_of_tool_that_runs_here_is_run(kind: str, after_hand_off: bool) -> None:
    executed = Executed()
    tool, call = kinds(executed)[kind]
    handing: list[Any] = [turn(("transfer_to_other", {}))] if after_hand_off else []
    model = ScriptedModel([*handing, [call], SAID])
    other = PlainAgent(name="other", instructions="x", model=model, tools=[tool, WebSearchTool()])
    agent = Agent("a", "x", model=model, **{"handoffs": [other]} if handing else {"tools": [tool]})
    await Led(PlanMode(is_on=True), yes=(kind,)).say(agent)
    assert executed == []
    names = [one.name for one in model.calls[len(handing)].tools]
    assert (tool.name in names) is (kind not in ("computer", "local_shell")) and "web_search" not in names


async def test_tools_that_run_at_the_provider_are_not_shown(root: Path) -> None:
    agent = agent_of(root, tools=[WebSearchTool()])
    await Led(PlanMode(is_on=True)).say(agent)
    assert "web_search" not in offered(agent) and "Write" in offered(agent)
    named = agent_of(root, tools=[WebSearchTool()])
    await Led(PlanMode(is_on=True, named=["web_search"])).say(named)
    assert "web_search" in offered(named)


async def test_a_persons_own_command_is_made_and_nothing_that_a_model_calls_for_it(root: Path) -> None:
    turns = [turn(write("src/b.py")), [assistant_message("I may not.")]]
    tools = [task_tool([HELPER])]
    commands = SlashCommands({"allow": ["Write", "Task"]}, aliases={"w": "Write"})
    agent = agent_of(root, model=ScriptedModel(turns), tools=tools, approval=False, middleware=[commands])
    led = Led(PlanMode(is_on=True))
    await led.say(agent, "/w src/a.py new")
    assert (root / "src/a.py").read_text() == "new"
    await led.say(agent, "/Task d p helper")
    assert not (root / "src/b.py").exists()


async def test_a_plan_that_is_agreed_to_permits_exactly_what_was_shown(root: Path) -> None:
    entries = ("Write(src/**)", "Bash(touch src/c.py)", "Write(.mcp.json)")
    agent = agent_of(
        root,
        turn(propose(*entries, plan="1. Write.\r\n\x1b[2J2. Go\u202e on.\nPermissions: none")),
        turn(write(), shell("touch src/c.py"), write("b.txt"), shell("touch src/d.py"), write(".mcp.json")),
    )
    led = Led(PlanMode(is_on=True), "perhaps", "y")
    led.answer = "no"
    assert await led.say(agent) == "Done."
    shown = led.shown
    assert (
        "writer proposes a plan:\n| 1. Write.\n| [U+001B][2J2. Go[U+202E] on.\n| Permissions: none\n" in shown
    )
    assert "  Write(src/**): create or overwrite every file in src/ and below\n" in shown
    assert "  Bash(touch src/c.py) (no sandbox): run exactly: touch src/c.py\n" in shown
    assert (
        "  Write(.mcp.json): create or overwrite the file .mcp.json\n    it names a protected file" in shown
    )
    assert (
        "Permitted without a question: Write(src/**), Bash(touch src/c.py), Write(.mcp.json)."
        in led.outputs[0]
    )
    assert led.asked == ["Write", "Bash", "Write"]
    assert made(root) == ["a.py", "a.txt", "c.py"]
    assert (led.mode.is_on, led.mode.prompt()) == (False, "> ")
    assert "ExitPlanMode" not in offered(agent, 1)
    # For the rest of the conversation, and no longer.
    led.asked.clear()
    await led.say(agent_of(root, turn(write("src/e.py"))))
    assert led.asked == []
    led.mode.forget()  # as /new, /resume and /reload do
    await led.say(agent_of(root, turn(write("src/f.py"))))
    assert led.asked == ["Write"]


async def test_yes_but_ask_each_time_permits_nothing(root: Path) -> None:
    led = Led(PlanMode(is_on=True), "e")
    await led.say(agent_of(root, turn(propose("Write(src/**)")), turn(write())))
    assert led.asked == ["Write"] and not led.mode.is_on
    assert "Permitted" not in led.outputs[0]


async def test_without_permissions_there_are_two_answers(root: Path) -> None:
    led = Led(PlanMode(is_on=True), "e", "y")
    await led.say(agent_of(root, turn(propose()), turn(write())))
    assert led.asked == ["Write"] and led.keyboard.typed == []


async def test_after_a_no_plan_mode_goes_on_and_the_model_gets_the_reason(root: Path) -> None:
    led = Led(PlanMode(is_on=True), "n", "Keep\nit small.", "y")
    await led.say(agent_of(root, turn(propose("Write(**)")), turn(write()), turn(propose("Write(src/a.py)"))))
    assert "has not agreed. The reason: Keep it small." in led.outputs[0]
    assert "[E200]" in led.outputs[1]
    assert not (root / "src/a.py").exists() and not led.mode.is_on


@pytest.mark.parametrize("approval", [True, False])
@pytest.mark.parametrize("order", [0, 1])
async def test_a_call_beside_a_plan_is_not_made(root: Path, order: int, approval: bool) -> None:
    calls = [propose("Write(src/**)"), write()]
    agent = agent_of(
        root, turn(*(calls[::-1] if order else calls)), turn(write("src/b.py")), approval=approval
    )
    led = Led(PlanMode(is_on=True), "y", yes=("Write",))
    await led.say(agent)
    assert sum("[E200]" in one for one in led.outputs) == 1
    assert [one.name for one in (root / "src").iterdir()] == ["b.py"]
    assert led.asked == []


async def test_a_subagent_beside_a_plan_goes_on_reading(root: Path) -> None:
    turns = [
        turn(propose("Write(src/**)"), ASK_HELPER),
        turn(write()),
        [assistant_message("I may not.")],
        SAID,
    ]
    agent = agent_of(root, model=ScriptedModel(turns), tools=[task_tool([HELPER])])
    led = Led(PlanMode(is_on=True), "y")
    await led.say(agent)
    assert not (root / "src/a.py").exists() and not led.mode.is_on


@pytest.mark.parametrize("answer", ["y", "n"])
async def test_of_two_plans_at_once_one_is_shown(root: Path, answer: str) -> None:
    plans = turn(propose("Write(src/**)", plan="First."), propose("Write(**)", plan="Second."))
    led = Led(PlanMode(is_on=True), answer, "Why not.")
    await led.say(agent_of(root, plans, turn(write("b.txt"))))
    assert led.shown.count("proposes a plan:") == 1 and "Second." not in led.shown
    assert led.asked == (["Write"] if answer == "y" else [])
    assert led.mode.is_on is (answer == "n")


async def test_what_is_too_wide_or_wrong_never_reaches_the_person(root: Path) -> None:
    wrong = [
        propose("Bash", "Write(src/**)"),
        propose("Write(//etc/**)"),
        propose("ExitPlanMode(*)", "Nothing"),
        propose(plan=" \n"),
        ("ExitPlanMode", {"permissions": []}),
        ("ExitPlanMode", {"plan": "x", "permissions": "Write(**)"}),
        propose(plan="x" * 20_001),
        propose(*["Write(a)"] * 21),
    ]
    led = Led(PlanMode(is_on=True))
    await led.say(agent_of(root, *map(turn, wrong)))
    assert led.shown == "" and led.mode.is_on
    assert all("'Bash': it permits every call" in one or "'" in one or "[E10]" in one for one in led.outputs)
    assert ["[E10]" in one for one in led.outputs] == [False] * 3 + [True] * 5


async def test_rules_do_not_take_the_plan_away(root: Path) -> None:
    led = Led(PlanMode(is_on=True), "y")
    definition = AgentDefinition(name="writer", description="d", system_prompt="x", tools=("Read", "Write"))
    model = ScriptedModel([turn(propose("Write(src/**)")), turn(write()), SAID])
    agent = Agent.from_definition(definition, model=model, tools=toolkit(root, write=True))
    await led.say(agent)
    assert (root / "src/a.py").exists() and led.asked == []


async def test_a_tool_of_the_name_is_not_mistaken_for_the_plan(root: Path) -> None:
    called: list[str] = []

    def ExitPlanMode(plan: str) -> str:
        """End plan mode, it says."""
        called.append(plan)
        return "ended"

    agent = Agent("a", "x", model=ScriptedModel([turn(propose()), SAID]), tools=[ExitPlanMode])
    led = Led(PlanMode(is_on=True), "n", "")
    await led.say(agent)
    assert called == [] and "a proposes a plan:" in led.shown
    assert offered(agent) == ["ExitPlanMode"]


async def test_ctrl_c_at_the_plan_ends_the_answer_and_nothing_else(root: Path) -> None:
    led = Led(PlanMode(is_on=True))
    with pytest.raises(asyncio.CancelledError):
        await led.say(agent_of(root, turn(propose("Write(**)"))))
    assert led.stopped and led.mode.prompt() == "plan> "
    led.keyboard.typed = ["y"]
    await led.say(agent_of(root, turn(propose("Write(src/**)")), turn(write())))
    assert led.asked == []


async def test_an_answer_that_ends_after_the_agreement_takes_nothing_back(root: Path) -> None:
    led = Led(PlanMode(is_on=True), "y")
    agent = agent_of(root, model=ScriptedModel([turn(propose("Write(src/**)"))]))
    with pytest.raises(Exception, match="step"):
        await led.say(agent)
    assert led.mode.prompt() == "> "
    await led.say(agent_of(root, turn(write())))
    assert led.asked == []


async def test_a_new_plan_begins_without_the_permissions_of_the_last(root: Path) -> None:
    led = Led(PlanMode(is_on=True), "y", "y")
    await led.say(agent_of(root, turn(propose("Write(src/**)"))))
    led.mode.enter()
    assert led.mode.prompt() == "plan> "
    await led.say(agent_of(root, turn(write()), turn(propose("Write(docs/**)")), turn(write("src/b.py"))))
    assert not (root / "src/a.py").exists() and led.asked == ["Write"]
    led.mode.enter()
    led.mode.leave()
    await led.say(agent_of(root, turn(write("docs/a.md"))))
    assert led.asked == ["Write"] * 2


async def test_always_is_no_way_around_it(root: Path) -> None:
    led = Led(PlanMode())
    led.answer = "always"
    await led.say(agent_of(root, turn(write()), turn(write("src/b.py"))))
    assert led.asked == ["Write"]
    led.mode.enter()
    await led.say(agent_of(root, turn(write("src/c.py"))))
    assert not (root / "src/c.py").exists()


async def test_a_command_that_names_a_protected_file_is_asked_about(root: Path) -> None:
    led = Led(PlanMode(is_on=True), "y")
    led.answer = "no"
    await led.say(agent_of(root, turn(propose("Bash(cp:*)")), turn(shell("cp a.txt .git/config"))))
    assert led.asked == ["Bash"]


async def test_where_no_one_can_agree_the_plan_is_the_answer(root: Path) -> None:
    led = Led(PlanMode(is_on=True), pipe=True, yes=("Write",))
    agent = agent_of(root, turn(propose("Write(src/**)", plan="1. Write."), write(), propose()))
    assert await led.say(agent) == "1. Write.\n\nThe plan asks for:\n- Write(src/**)"
    model: Any = agent.given.model
    assert len(model.calls) == 1 and not (root / "src/a.py").exists()
    assert await led.say(agent_of(root)) == "Done."
    assert led.mode.is_on


async def test_an_answer_that_failed_leaves_no_plan_behind(root: Path) -> None:
    led = Led(PlanMode(is_on=True), pipe=True)

    @function_tool(failure_error_function=None)
    def fail() -> str:
        """Fail."""
        raise OSError("no disk")

    agent = agent_of(root, turn(propose(), ("fail", {})), tools=[fail])
    led.mode._named = PlanMode(named=["fail"])._named
    with pytest.raises(Exception, match="no disk"):
        await led.say(agent)
    assert await led.say(agent_of(root)) == "Done."


async def test_two_chats_have_modes_of_their_own(root: Path) -> None:
    planned, free = Led(PlanMode(is_on=True)), Led(PlanMode())
    async with anyio.create_task_group() as group:
        group.start_soon(planned.say, agent_of(root, turn(write("src/planned.py"))))
        group.start_soon(free.say, agent_of(root, turn(write("src/free.py"))))
    assert [one.name for one in (root / "src").iterdir()] == ["free.py"]


def test_the_tools_of_the_library_that_only_read_are_marked(root: Path) -> None:
    from kantan_agents import skill_tools
    from kantan_agents.tools.read_only import is_read_only

    tools: list[FunctionTool] = toolkit(root, write=True, shell=True, network=True)
    tools += [todo_write(), task_tool([HELPER]), *skill_tools([])]
    assert [tool.name for tool in tools if not is_read_only(tool)] == [
        "Write",
        "Edit",
        "MultiEdit",
        "Bash",
        "KillShell",
        "WebFetch",
    ]
