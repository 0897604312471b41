"""The TaskTool scenarios of the specification, under their original names (spec subagents)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import agents
import pytest

from kantan_agents import Agent, AgentLoader, Middleware, ToolRetrieval, task_tool
from kantan_agents.errors import InvalidOptionError, InvalidToolRulesError
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from tests.agent.delegation.cast import Cast, bash, boss, definition, delegate, read, say, use, write

READER = definition("reader", tools=("read",))


class TestLoadSubAgent:
    """加载子 Agent."""

    async def test_the_prompt_and_the_tools_come_from_its_file(self) -> None:
        cast = Cast(boss=[delegate("reader"), say("done")], reader=[say("read it")])
        await boss(cast, READER).run_async("Go")
        call = cast.parts["reader"].first_call
        assert call is not None
        assert call.system_instructions == "You are reader."
        assert cast.visible_tools("reader") == ["read"]

    async def test_it_is_found_in_the_directories_of_the_loader(self, tmp_path: Path) -> None:
        (tmp_path / "any.md").write_text(READER.dump(), encoding="utf-8")
        cast = Cast(boss=[delegate("Reader"), say("done")], reader=[say("read it")])
        tools = [read, write, task_tool(AgentLoader(directories=[tmp_path]))]
        await Agent("boss", "You are boss.", model=cast, tools=tools).run_async("Go")
        assert cast.results("boss") == ["read it"]

    async def test_a_file_changed_during_the_run_applies_from_the_next_delegation(
        self, tmp_path: Path
    ) -> None:
        file = tmp_path / "helper.md"
        file.write_text(definition("helper").dump(), encoding="utf-8")

        def rewrite() -> str:
            """Change the file."""
            file.write_text(definition("helper", tools=("read",)).dump(), encoding="utf-8")
            return "changed"

        cast = Cast(
            boss=[delegate("helper"), use("rewrite", "t2"), delegate("helper", call_id="d2"), say("done")],
            helper=[say("one"), say("two")],
        )
        tools = [read, rewrite, task_tool(AgentLoader(directories=[tmp_path]))]
        await Agent("boss", "You are boss.", model=cast, tools=tools).run_async("Go")
        assert cast.results("boss") == ["one", "changed", "two"]
        assert cast.visible_tools("helper", 0) == ["read", "rewrite"]  # no agent is left to delegate to
        assert cast.visible_tools("helper", 1) == ["read"]


class TestCreateSubContext:
    """创建子上下文."""

    async def test_the_child_gets_a_copy_of_the_parents_context(self) -> None:
        seen: dict[str, Any] = {}
        connection = object()

        async def look(context: agents.RunContextWrapper[Any]) -> str:
            """Look at the context."""
            seen.update(context.context)
            context.context["tenant"] = "changed below"
            context.context["tool_rules"]["deny"] = "*"
            return "looked"

        cast = Cast(
            boss=[delegate("looker"), use("read", path="a"), say("done")],
            looker=[use("look"), say("fine")],
        )
        tools = [read, agents.function_tool(look), task_tool([definition("looker")])]
        agent = Agent("boss", "You are boss.", model=cast, tools=tools)
        context = {
            "tenant": "acme",
            "connection": connection,
            "history": [{"role": "user", "text": "before"}],
        }
        await agent.run_async("Go", {**context, "tool_rules": {"allow": "*", "deny": ["write"]}})
        assert seen["connection"] is connection
        assert seen["tenant"] == "acme"
        assert seen["tool_rules"]["allow"] == "*"
        assert "history" not in seen
        assert seen["result"] is None
        assert cast.results("boss") == ["fine", "text of a"]  # the parent's rules are as they were

    async def test_the_child_does_not_write_to_the_parents_context(self) -> None:
        cast = Cast(boss=[delegate("reader"), say("done")], reader=[say("read it")])
        context = await boss(cast, READER).run_async("Go", {"a": 1})
        assert set(context) == {"a", "tool_rules", "result", "history"}
        assert [entry["text"] for entry in context["history"]] == ["Go", "done"]

    async def test_the_child_inherits_model_and_model_settings(self) -> None:
        cast = Cast(boss=[delegate("reader"), say("done")], reader=[say("read it")])
        settings = agents.ModelSettings(temperature=0.25)
        await boss(cast, READER, model_settings=settings).run_async("Go")
        call = cast.parts["reader"].first_call
        assert call is not None
        assert call.model_settings.temperature == 0.25

    async def test_a_different_model_does_not_inherit_model_settings(self) -> None:
        other = Cast(reader=[say("read by another")])
        cast = Cast(boss=[delegate("reader"), say("done")])
        reader = definition("reader", model="haiku")
        task = {"models": {"haiku": other}}
        settings = agents.ModelSettings(temperature=0.25)
        await boss(cast, reader, task=task, model_settings=settings).run_async("Go")
        call = other.parts["reader"].first_call
        assert call is not None
        assert call.model_settings.temperature is None
        assert cast.results("boss") == ["read by another"]

    async def test_middleware_of_the_parent_wraps_the_child_too(self) -> None:
        asked: list[str] = []

        class Note(Middleware):
            async def model_call(self, call: Any, call_next: Any) -> Any:
                asked.append(call.agent)
                return await call_next(call)

        cast = Cast(boss=[delegate("reader"), say("done")], reader=[say("read it")])
        await boss(cast, READER, middleware=[Note()]).run_async("Go")
        assert asked == ["boss", "reader", "boss"]

    async def test_options_of_the_tool_override_those_of_the_parent(self) -> None:
        runs: list[str] = []

        async def note(run: Any, call_next: Any) -> None:
            runs.append(run.agent.name)
            await call_next(run)

        cast = Cast(boss=[delegate("reader"), say("done")], reader=[say("read it")])
        await boss(cast, READER, middleware=[note], task={"middleware": []}).run_async("Go")
        assert runs == ["boss"]

    async def test_the_template_in_a_file_cannot_read_the_environment(self, monkeypatch: Any) -> None:
        monkeypatch.setenv("SECRET", "s3cret")
        prying = definition("prying")
        prying = type(prying)("prying", "pries", "You are prying. {{ $env.SECRET }}{{ $ctx.tenant }}")
        cast = Cast(boss=[delegate("prying"), say("done")], prying=[say("seen")])
        await boss(cast, prying, allow_env=True).run_async("Go", {"tenant": "acme"})
        call = cast.parts["prying"].first_call
        assert call is not None
        assert call.system_instructions == "You are prying. acme"


class TestReturnToolResult:
    """传递工具结果."""

    async def test_the_answer_is_the_result_of_the_tool_call(self) -> None:
        cast = Cast(boss=[delegate("reader"), say("done")], reader=[use("read", path="a"), say("It says: x")])
        context = await boss(cast, READER).run_async("Go")
        assert cast.results("boss") == ["It says: x"]
        assert context["result"].final_output == "done"

    async def test_an_empty_answer_is_reported_as_such(self) -> None:
        cast = Cast(boss=[delegate("reader"), say("done")], reader=[say("")])
        await boss(cast, READER).run_async("Go")
        assert cast.results("boss") == ["The agent has finished without an answer."]

    async def test_a_structured_answer_is_json(self) -> None:
        cast = Cast(boss=[delegate("reader"), say("done")], reader=[say('{"pages": 3}')])
        schema = {"type": "object", "properties": {"pages": {"type": "integer"}}, "required": ["pages"]}
        await boss(cast, READER, task={"output_type": schema}).run_async("Go")
        assert cast.results("boss") == ['{"pages": 3}']


class TestNestedDelegation:
    """嵌套委托."""

    async def test_each_level_has_its_own_filter(self) -> None:
        middle = definition("middle", tools=("read", "write", "Task"))
        inner = definition("inner", tools=("write", "bash"))
        cast = Cast(
            boss=[delegate("middle"), say("done")],
            middle=[delegate("inner"), say("from inner")],
            inner=[use("bash", command="ls"), use("write", "t2", path="b"), say("written")],
        )
        await boss(cast, middle, inner).run_async("Go")
        assert cast.visible_tools("boss") == ["read", "write", "bash", "Task"]
        assert cast.visible_tools("middle") == ["read", "write", "Task"]
        assert cast.visible_tools("inner") == ["write"]
        refused, written = cast.results("inner")
        assert refused.startswith("[kantan-agents][E8] Tool is not allowed: bash")
        assert written == "b written"
        assert cast.results("boss") == ["from inner"]


class TestFlow:
    """委托流程."""

    async def test_over_http_in_seven_steps(self, tmp_path: Path) -> None:
        (tmp_path / "reader.md").write_text(READER.dump(), encoding="utf-8")
        script: list[str | ScriptedToolCall] = [
            ScriptedToolCall(
                "Task", {"description": "read", "prompt": "Read a.txt", "subagent_type": "reader"}
            ),
            ScriptedToolCall("read", {"path": "a.txt"}),
            "a.txt says: text of a.txt",
            "The file was read.",
        ]
        with OfflineServer(script) as server:
            tools = [read, write, task_tool(AgentLoader(directories=[tmp_path]))]
            agent = Agent("boss", "You are boss.", model=server.bundle(), tools=tools)
            context = await agent.run_async("Go")
        asked = [request.body for request in server.requests]
        assert [body["instructions"] for body in asked] == [
            "You are boss.",
            "You are reader.",
            "You are reader.",
            "You are boss.",
        ]
        assert [[tool["name"] for tool in body["tools"]] for body in asked[:2]] == [
            ["read", "write", "Task"],
            ["read"],
        ]
        assert asked[1]["input"][-1]["content"] == "Read a.txt"
        assert asked[3]["input"][-1]["output"] == "a.txt says: text of a.txt"
        assert context["result"].final_output == "The file was read."


async def test_parallel_delegations_run_concurrently() -> None:
    arrived = asyncio.Event()
    seen: list[str] = []

    async def meet() -> str:
        """Wait until both calls are running."""
        seen.append("here")
        if len(seen) == 2:
            arrived.set()
        await arrived.wait()
        return "met"

    step = [*delegate("one", call_id="d1"), *delegate("two", call_id="d2")]
    cast = Cast(
        boss=[step, say("done")],
        one=[use("meet"), say("one is back")],
        two=[use("meet"), say("two is back")],
    )
    tools = [agents.function_tool(meet), task_tool([definition("one"), definition("two")])]
    await Agent("boss", "You are boss.", model=cast, tools=tools).run_async("Go")
    assert cast.results("boss") == ["one is back", "two is back"]


async def test_the_description_lists_the_current_agents(tmp_path: Path) -> None:
    cast = Cast(boss=[use("add"), say("done")])

    def add() -> str:
        """Add an agent."""
        (tmp_path / "late.md").write_text(definition("late").dump(), encoding="utf-8")
        return "added"

    (tmp_path / "early.md").write_text(definition("early").dump(), encoding="utf-8")
    tools = [add, task_tool(AgentLoader(directories=[tmp_path]))]
    await Agent("boss", "You are boss.", model=cast, tools=tools).run_async("Go")
    first, second = (call.tools[-1].description for call in cast.parts["boss"].calls)
    assert "- early: does early" in first
    assert "late" not in first
    assert "- late: does late" in second


async def test_the_description_stays_bounded_with_very_many_agents() -> None:
    many = [definition(f"agent{number:04}", category="x" * 5) for number in range(3000)]
    cast = Cast(boss=[say("done")])
    await boss(cast, *many).run_async("Go")
    description = cast.parts["boss"].calls[0].tools[-1].description
    assert "- agent0000: does agent0000" in description
    assert len(description) < 25_000
    assert description.endswith("more")


async def test_the_tool_is_hidden_if_no_agent_is_available() -> None:
    cast = Cast(boss=[say("done")])
    await boss(cast).run_async("Go")
    assert cast.visible_tools("boss") == ["read", "write", "bash"]


async def test_the_tool_may_have_another_name() -> None:
    lead = definition("lead", tools=("delegate", "read"))
    cast = Cast(
        boss=[delegate("lead", tool="delegate"), say("done")],
        lead=[delegate("reader", tool="delegate"), say("led")],
        reader=[say("read")],
    )
    await boss(cast, lead, READER, task={"name": "delegate"}).run_async("Go")
    assert cast.results("lead") == ["read"]


async def test_plain_sdk_agents_can_delegate() -> None:
    cast = Cast(boss=[delegate("reader"), say("done")], reader=[use("read", path="a"), say("read it")])
    tools: list[agents.Tool] = [*map(agents.function_tool, (read, write)), task_tool([READER])]
    plain = agents.Agent(name="boss", instructions="You are boss.", model=cast, tools=tools)
    result = await agents.Runner.run(plain, "Go")
    assert result.final_output == "done"
    assert cast.results("boss") == ["read it"]
    assert cast.visible_tools("reader") == ["read"]


async def test_an_sdk_agent_reached_by_a_hand_off_can_delegate() -> None:
    cast = Cast(
        front=[[*use("transfer_to_boss")], say("never")],
        boss=[delegate("reader"), say("done")],
        reader=[use("write", path="a"), say("read it")],
    )
    tools: list[agents.Tool] = [*map(agents.function_tool, (read, write)), task_tool([READER])]
    plain = agents.Agent(name="boss", instructions="You are boss.", model=cast, tools=tools)
    front = Agent("front", "You are front.", model=cast, handoffs=[plain])
    context = await front.run_async("Go")
    assert context["result"].final_output == "done"
    assert cast.results("boss")[-1] == "read it"
    assert cast.results("reader")[0].startswith("[kantan-agents][E8]")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"agents": "reader"}, "must be an AgentLoader or AgentDefinitions"),
        ({"name": ""}, "must be a str that is not empty"),
        ({"max_depth": -1}, "max_depth"),
        ({"max_delegations": 1.5}, "max_delegations"),
        ({"on_failure": "ignore"}, 'must be "feedback" or "raise"'),
        ({"models": ["gpt"]}, "models: must be a mapping of short names"),
        ({"agents": [READER], "middleware": 5}, "middleware: must be a list"),
        ({"agents": [READER], "history": "x"}, "history: must be an int"),
        ({"agents": [READER], "tool_retrieval": 5}, "tool_retrieval: must be a ToolRetrieval"),
    ],
)
def test_an_invalid_option_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidOptionError, match=said):
        task_tool(**options)


def test_rules_of_the_tool_are_checked_when_it_is_made() -> None:
    with pytest.raises(InvalidToolRulesError):
        task_tool([READER], tool_rules={"alow": []})


async def test_invalid_arguments_return_an_error_to_the_model() -> None:
    cast = Cast(
        boss=[
            use("Task", "d1", subagent_type="reader"),
            use("Task", "d2", prompt=" ", subagent_type="r"),
            say("done"),
        ]
    )
    await boss(cast, READER).run_async("Go")
    first, second = cast.results("boss")
    assert "[E10]" in first
    assert "prompt must be a text that is not empty" in second


async def test_the_same_tool_works_for_agents_with_other_tools() -> None:
    task = task_tool([definition("helper")])
    for tools in ([read], [write, bash]):
        cast = Cast(boss=[delegate("helper"), say("done")], helper=[say("ok")])
        await Agent("boss", "You are boss.", model=cast, tools=[*tools, task]).run_async("Go")
        assert cast.visible_tools("helper") == [tool.__name__ for tool in tools]


async def test_tool_retrieval_works_in_a_child() -> None:
    tools = [agents.function_tool(_numbered(number), name_override=f"tool_{number}") for number in range(6)]
    task = task_tool([definition("worker")], tool_retrieval=ToolRetrieval(2, always=["tool_5"]))
    cast = Cast(boss=[delegate("worker", "Do thing 1."), say("done")], worker=[say("did it")])
    await Agent("boss", "You are boss.", model=cast, tools=[task, *tools]).run_async("Go")
    assert cast.visible_tools("worker") == ["find_tools", "tool_5", "tool_1"]


def _numbered(number: int) -> Any:
    def tool() -> str:
        return str(number)

    tool.__doc__ = f"Do thing {number}."
    return tool
