"""Hooks around the tool calls of real runs: of every agent, after the rules, for what is really called."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import agents
import anyio
import attrs
import pytest

from kantan_agents import Agent, AgentDefinition, Middleware, subscribe, task_tool
from kantan_agents.cli.hooks.hooks import Hooks
from kantan_agents.core.interception import inherited_layers
from kantan_agents.errors import RepeatedFailureError
from kantan_agents.middleware import Deadline, PendingCall
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from tests.toolkit.calls import until
from tests.tools.mcp.offering import Offering

from .conftest import Configure, group

LOG = "cat >> log"
called: list[str] = []


def look(what: str) -> str:
    """Look at something."""
    called.append(what)
    return f"{what}: seen"


def fail(what: str) -> str:
    """Fail."""
    called.append(what)
    raise OSError(what)


def number() -> int:
    """Return a number."""
    return 7


@attrs.frozen
class Guarded:
    """The user's hooks, in force in this test.

    Attributes:
        folder: The user's configuration directory.
        hooks: The hooks.
        warnings: What a person was shown.
    """

    folder: Path
    hooks: Hooks
    warnings: list[str]

    @property
    def log(self) -> list[Any]:
        """What hooks with the command ``LOG`` have got."""
        path = self.folder / "log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def seen(self) -> list[tuple[str, str]]:
        """Its events and tools."""
        return [(one["hook_event_name"], one["tool_name"]) for one in self.log]


Guard = Callable[..., Guarded]


@pytest.fixture
def guard(work: Path, own: Path, configure: Configure) -> Iterator[Guard]:
    token = inherited_layers.set(None)
    called.clear()

    def start(**events: Any) -> Guarded:
        configure(**events)
        hooks = Hooks.of_user(None)
        warnings: list[str] = []

        async def warn(text: str) -> None:
            warnings.append(text)

        hooks.warn = warn
        hooks.guard_runs()
        return Guarded(own, hooks, warnings)

    yield start
    inherited_layers.reset(token)


async def run(replies: list[Any], context: dict[str, Any] | None = None, **options: Any) -> list[Any]:
    """Run an agent; return the results of the calls that its model has got."""
    with OfflineServer([*replies, "Done."]) as server:
        options.setdefault("tools", [look, fail, number])
        await Agent("shop", "Serve.", model=server.bundle(), **options).run_async("Go", context or {})
        return outputs(server)


def outputs(server: OfflineServer, request: int = -1) -> list[Any]:
    items = server.requests[request].body["input"]
    return [item["output"] for item in items if item.get("type") == "function_call_output"]


def looking(what: str = "it") -> ScriptedToolCall:
    return ScriptedToolCall("look", {"what": what}, "call_1")


async def test_a_hook_gets_the_call_and_then_its_result(guard: Guard, work: Path) -> None:
    guarded = guard(PreToolUse=[group(LOG)], PostToolUse=[group(LOG)])
    guarded.hooks.session = lambda: "talk-1"
    assert await run([looking("$(touch made) é\n")]) == ["$(touch made) é\n: seen"]
    before, after = guarded.log
    assert before == {
        "session_id": "talk-1",
        "cwd": str(work),
        "hook_event_name": "PreToolUse",
        "tool_name": "look",
        "tool_input": {"what": "$(touch made) é\n"},
        "tool_use_id": "call_1",
        "agent_type": "shop",
    }
    assert after == {**before, "hook_event_name": "PostToolUse", "tool_response": "$(touch made) é\n: seen"}
    assert guarded.warnings == []


async def test_where_it_starts(guard: Guard, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PYTHONPATH": str(work), "BASH_ENV": "x", "ENV": "x", "OPENAI_API_KEY": "k"}.items():
        monkeypatch.setenv(name, value)
    (work / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{work}/bin:.::{os.environ['PATH']}")
    guarded = guard(PreToolUse=[group("pwd > where; env > env")])
    await run([looking()])
    assert (guarded.folder / "where").read_text().strip() == str(guarded.folder)
    env = dict(line.split("=", 1) for line in (guarded.folder / "env").read_text().splitlines())
    assert env["KANTAN_AGENTS_PROJECT_DIR"] == str(work)
    assert not {"PYTHONPATH", "BASH_ENV", "ENV", "OPENAI_API_KEY"} & env.keys()
    assert not any(one in ("", ".") or one.startswith(str(work)) for one in env["PATH"].split(":"))


async def test_exit_code_2_blocks_the_call_and_the_model_gets_the_reason(guard: Guard) -> None:
    guarded = guard(
        PreToolUse=[group("echo not that >&2; exit 2", "look"), group("true")], PostToolUse=[group(LOG)]
    )
    assert await run([looking()]) == ["A hook of the user blocks this call: not that"]
    assert called == [] and guarded.log == []
    assert await run([ScriptedToolCall("number", {})]) == ["7"]


async def test_a_blocked_call_is_a_refused_one_and_not_tried_for_ever(guard: Guard) -> None:
    guard(PreToolUse=[group("exit 2")])
    events: list[Any] = []
    with subscribe(events.append), pytest.raises(RepeatedFailureError):
        await run([looking()] * 9)
    ends = [event for event in events if event.type in ("tool_call_denied", "tool_call_finished")]
    assert {event.type for event in ends} == {"tool_call_denied"} and len(ends) == 5
    assert ends[0].message == "A hook of the user blocks this call: it gave no reason"


@pytest.mark.parametrize(
    ("command", "more", "fault"),
    [
        ("echo broken >&2; exit 1", {}, "exit code 1: broken"),
        ("kill -9 $$", {}, "exit code -9"),
        ("exec no-such-program", {}, "exit code 127"),
        ("sleep 9", {"timeout": 0.05}, "it took more than 0.05 seconds"),
        ("yes", {}, "it wrote more than 30000 bytes"),
    ],
)
async def test_a_guard_that_fails_lets_nothing_through(
    guard: Guard, command: str, more: dict[str, Any], fault: str
) -> None:
    guarded = guard(PreToolUse=[group(command, **more)])
    assert await run([looking()]) == [
        "A hook of the user that checks this call has failed, so it was not made."
    ]
    assert called == []
    (warning,) = guarded.warnings
    assert warning.startswith(f"PreToolUse hook {command} has failed: {fault}")


async def test_a_guard_that_cannot_be_started_lets_nothing_through(guard: Guard) -> None:
    guarded = guard(PreToolUse=[group("true")])
    (guarded.folder / "hooks.json").unlink()
    guarded.folder.rmdir()
    assert "has failed" in (await run([looking()]))[0]
    assert called == []


async def test_a_hook_after_a_call_adds_to_the_result_or_warns(guard: Guard) -> None:
    after = [group("echo tidy up >&2; exit 2", "look|number"), group("exit 1", "look")]
    guarded = guard(PostToolUse=after)
    assert await run([looking()]) == ["it: seen\n\nA hook of the user says about this call: tidy up"]
    assert guarded.warnings == ["PostToolUse hook exit 1 has failed: exit code 1"]
    assert await run([ScriptedToolCall("number", {})]) == ["7"]
    assert guarded.warnings[1:] == ["echo tidy up >&2; exit 2: tidy up"]


async def test_a_call_that_fails_has_no_result(guard: Guard) -> None:
    guarded = guard(PreToolUse=[group(LOG)], PostToolUse=[group(LOG)])
    (output,) = await run([ScriptedToolCall("fail", {"what": "disk"})])
    assert "disk" in output or "error" in output
    assert guarded.seen == [("PreToolUse", "fail")]


async def test_rules_decide_first_and_a_hook_allows_nothing(guard: Guard) -> None:
    guarded = guard(PreToolUse=[group(f"{LOG}; echo allow")])
    rules = {"tool_rules": {"deny": ["look(secret.txt)"]}}
    assert "not allowed" in (await run([looking("secret.txt")], rules))[0]
    assert called == [] and guarded.log == []
    assert await run([looking("a.txt")], rules) == ["a.txt: seen"]
    assert len(guarded.log) == 1


class Rewrite(Middleware):
    async def tool_call(self, call: Any, call_next: Any) -> Any:
        if call.name == "look":
            call = attrs.evolve(call, arguments='{"what": "other"}')
        return await call_next(call)


async def test_the_arguments_that_it_sees_are_those_of_the_call(guard: Guard) -> None:
    guarded = guard(PreToolUse=[group(LOG)], PostToolUse=[group(LOG)])
    await run([looking()], middleware=[Rewrite()])
    assert called == ["other"]
    assert [one["tool_input"] for one in guarded.log] == [{"what": "other"}] * 2


async def test_hooks_of_one_event_run_at_the_same_time(guard: Guard) -> None:
    meet = "touch {0}; while [ ! -e {1} ]; do sleep 0.01; done; echo {0} >&2; exit 2"
    guarded = guard(PreToolUse=[group(meet.format("a", "b")), group(meet.format("b", "a"))])
    with anyio.fail_after(50):
        (output,) = await run([looking()])
    assert sorted(output.splitlines()) == [f"A hook of the user blocks this call: {one}" for one in "ab"]
    assert guarded.warnings == []


async def test_a_server_s_tool_is_known_by_its_full_name(guard: Guard) -> None:
    server = Offering("docs", "search", "drop")
    guarded = guard(PreToolUse=[group("exit 2", "mcp__docs__drop"), group(LOG, "mcp__.*")])
    calls = [ScriptedToolCall("search", {"value": "a"}, "c1"), ScriptedToolCall("drop", {"value": "b"}, "c2")]
    await run([calls], tools=[], mcp_servers=[server])
    assert server.called == ["search"]
    assert sorted(guarded.seen) == [("PreToolUse", "mcp__docs__drop"), ("PreToolUse", "mcp__docs__search")]


TASK = ScriptedToolCall("Task", {"description": "x", "prompt": "Go.", "subagent_type": "clerk"})
CLERK = AgentDefinition(name="clerk", description="Looks.", system_prompt="Look.")


@pytest.mark.parametrize("middleware", [[], [Deadline(60)]])
async def test_tools_of_delegated_agents_are_guarded(guard: Guard, middleware: list[Any]) -> None:
    guarded = guard(PreToolUse=[group(f"{LOG}; exit 2", "look"), group(LOG, "Task")])
    # Options for the children do not take the hooks from them.
    tools = [look, task_tool([CLERK], middleware=[])]
    with OfflineServer([TASK, looking(), "I cannot.", "Done."]) as server:
        agent = Agent("shop", "Serve.", model=server.bundle(), tools=tools, middleware=middleware)
        await agent.run_async("Go")
        assert outputs(server, 2) == ["A hook of the user blocks this call: it gave no reason"]
    assert called == []
    assert [(one["tool_name"], one["agent_type"]) for one in guarded.log] == [
        ("Task", "shop"),
        ("look", "clerk"),
    ]


@pytest.mark.parametrize("kind", ["handoff", "sdk handoff", "agent as tool", "run in a tool"])
async def test_tools_of_every_other_agent_are_guarded(guard: Guard, kind: str) -> None:
    guarded = guard(PreToolUse=[group(f"{LOG}; exit 2", "look")])
    with OfflineServer(lambda request: steps.pop(0)) as server:
        bundle = server.bundle()
        inner = Agent("inner", "Look.", model=bundle, tools=[look])
        sdk_model = agents.OpenAIResponsesModel("m", bundle.client)
        plain = agents.Agent(
            "inner", instructions="Look.", model=sdk_model, tools=[agents.function_tool(look)]
        )

        async def ask() -> str:
            """Ask the other one."""
            context = await inner.run_async("Look.")
            return str(context["result"].final_output)

        options: Any = {
            "handoff": {"handoffs": [inner]},
            "sdk handoff": {"handoffs": [plain]},
            "agent as tool": {"tools": [inner.as_tool("ask", "Ask the other one.")]},
            "run in a tool": {"tools": [ask]},
        }[kind]
        given = {"input": "Look."} if kind == "agent as tool" else {}
        first = ScriptedToolCall("transfer_to_inner" if "handoff" in kind else "ask", given)
        steps: list[Any] = [first, looking(), "I cannot.", "Done."]
        await Agent("shop", "Serve.", model=bundle, **options).run_async("Go")
        assert "A hook of the user blocks this call: it gave no reason" in outputs(server, 2)
    assert called == []
    assert [one["agent_type"] for one in guarded.log] == ["inner"]


async def test_a_cancelled_run_ends_the_hook(guard: Guard) -> None:
    guarded = guard(PreToolUse=[group("sleep 1000 & echo $! > child; wait")])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, [looking()])
        await until((guarded.folder / "child").exists)
        tasks.cancel_scope.cancel()
    assert called == []


async def test_what_was_decided_before_a_question_counts_once(guard: Guard) -> None:
    guarded = guard(PreToolUse=[group(f"{LOG}; exit 2")])
    pending = PendingCall("call_1", "look", '{"what":"it"}', "shop")
    assert "blocks this call" in await guarded.hooks.ask_early(pending)
    others: list[dict[str, Any]] = [{"call_id": "2"}, {"tool": "fail"}, {"arguments": "{}"}, {"agent": "a"}]
    for other in others:
        await guarded.hooks._refusal(attrs.evolve(pending, **other))
    assert len(guarded.log) == 5
    await guarded.hooks._refusal(pending)
    assert len(guarded.log) == 5
    await guarded.hooks._refusal(pending)
    assert len(guarded.log) == 6
    await guarded.hooks.ask_early(pending)
    await guarded.hooks.ask_early(pending)
    await guarded.hooks.submit("The next one.")
    await guarded.hooks._refusal(pending)
    assert len(guarded.log) == 9


async def test_a_hook_that_was_not_asked_before_a_question_is_asked_when_the_call_is_made(
    guard: Guard,
) -> None:
    guarded = guard(PreToolUse=[group(f"{LOG}; exit 2", "drop"), group(LOG, "mcp__docs__drop")])
    # The question knows the full name only; the call also has the name that the server has given its tool.
    asked = PendingCall("call_1", "mcp__docs__drop", "{}", "shop", names=("mcp__docs__drop", "mcp__docs"))
    assert await guarded.hooks.ask_early(asked) == ""
    assert len(guarded.log) == 1
    made = attrs.evolve(asked, names=("drop", "mcp__docs__drop", "mcp__docs"))
    assert "blocks this call" in await guarded.hooks._refusal(made)
    assert len(guarded.log) == 2


async def test_a_prompt_is_blocked_or_gets_more(guard: Guard) -> None:
    prompt = [group("cat > prompt; echo on branch main"), group("echo 'and more'; echo unseen >&2")]
    guarded = guard(UserPromptSubmit=prompt, Stop=[group("exit 2")])
    objections, added = await guarded.hooks.submit("Hello")
    first, *lines = added.strip().splitlines()
    assert (objections, first) == ("", "Added by a hook of the user:")
    assert sorted(lines) == ["and more", "on branch main"]
    assert json.loads((guarded.folder / "prompt").read_text())["prompt"] == "Hello"


@pytest.mark.parametrize(
    ("command", "objection", "warnings"),
    [("echo a password >&2; exit 2", ": a password", 0), ("exit 1", "a hook has failed", 1)],
)
async def test_a_prompt_is_not_sent_if_a_hook_blocks_or_fails(
    guard: Guard, command: str, objection: str, warnings: int
) -> None:
    guarded = guard(UserPromptSubmit=[group(command)])
    objections, _ = await guarded.hooks.submit("Hello")
    assert objections.endswith(objection)
    assert len(guarded.warnings) == warnings


async def test_the_end_of_an_answer_can_warn(guard: Guard) -> None:
    stop = [group("cat > said"), group("echo tests fail >&2; exit 2"), group("exit 1")]
    guarded = guard(Stop=stop)
    await guarded.hooks.stop("The answer.")
    said = json.loads((guarded.folder / "said").read_text())
    assert (said["hook_event_name"], said["last_assistant_message"]) == ("Stop", "The answer.")
    assert said["stop_hook_active"] is False
    assert sorted(guarded.warnings) == [
        "Stop hook exit 1 has failed: exit code 1",
        "echo tests fail >&2; exit 2: tests fail",
    ]
