"""``Agent.from_definition``: from a subagent file to an agent that runs."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import agents
import pytest
from agents.mcp import MCPServerStdio

from kantan_agents import Agent, Prompt, ToolRetrieval, get_context_with_tool_rules, task_tool
from kantan_agents.core.prompt import hash_text
from kantan_agents.errors import (
    EmptyPromptTextError,
    InvalidOptionError,
    InvalidToolRulesError,
    ModelNotFoundError,
)
from kantan_agents.subagent_files import MODELS, AgentDefinition, model_of
from kantan_agents.testing import OfflineServer, ScriptedModel, assistant_message, function_call
from tests.programs import Preloaded

FILE = """---
name: code-reviewer
description: "Reviews code for best practices and potential issues"
tools: ["FileRead", "Grep", "Bash"]
model: "claude-sonnet"
---

You are an expert code reviewer. When reviewing code:
1. Check for security vulnerabilities
2. Look for performance issues
3. Ensure code follows best practices
"""


def tool(name: str) -> Any:
    def run(value: str = "") -> str:
        """Do it."""
        return f"{name} did {value}"

    return agents.function_tool(run, name_override=name)


TOOLS = [tool(name) for name in ("FileRead", "Grep", "Bash", "Write")]


def read(value: str = "") -> str:
    """Read it."""
    return value


def define(**fields: Any) -> AgentDefinition:
    return AgentDefinition(**{"name": "a", "description": "does a", "system_prompt": "You are a.", **fields})


def model_answering(text: str = "done", *steps: Any) -> ScriptedModel:
    return ScriptedModel([*steps, [assistant_message(text)]])


def tools_shown_to(model: ScriptedModel) -> list[str]:
    call = model.first_call
    assert call is not None
    return [tool.name for tool in call.tools]


async def test_the_example_of_the_specification_runs() -> None:
    with OfflineServer(["Looks fine."]) as server:
        models = {"claude-sonnet": server.bundle()}
        agent = Agent.from_definition(AgentDefinition.loads(FILE), tools=TOOLS, models=models)
        context = await agent.run_async("Review this.")
    (request,) = server.requests
    assert request.body["instructions"].startswith("You are an expert code reviewer.")
    assert [tool["name"] for tool in request.body["tools"]] == ["FileRead", "Grep", "Bash"]
    assert context["result"].final_output == "Looks fine."


async def test_only_filtered_tools_can_be_used_whatever_the_context_allows() -> None:
    model = model_answering("done", [function_call("Write", {"value": "x"}, call_id="1")])
    agent = Agent.from_definition(define(tools=("Grep",)), tools=TOOLS, model=model)
    await agent.run_async("Go", get_context_with_tool_rules({"allow": "*"}))
    assert tools_shown_to(model) == ["Grep"]
    last = model.last_call
    assert last is not None
    assert last.input[-1]["output"].startswith("[kantan-agents][E8] Tool is not allowed: Write")


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({}, ["FileRead", "Grep", "Bash", "Write"]),
        ({"tools": ()}, []),
        ({"tools": ("Nothing",)}, []),
        ({"disallowed_tools": ("Write",)}, ["FileRead", "Grep", "Bash"]),
        ({"tools": ("Grep", "Write"), "disallowed_tools": ("Write",)}, ["Grep"]),
        ({"disallowed_tools": ("*",)}, []),
        ({"tools": ("Bash(git diff:*)",)}, ["Bash"]),
        ({"tools": ("Bash(rm * -rf)",)}, []),
        ({"disallowed_tools": ("Bash(rm * -rf)",)}, ["FileRead", "Grep", "Write"]),
    ],
)
async def test_the_model_is_shown_the_tools_that_the_file_permits(
    fields: dict[str, Any], left: list[str]
) -> None:
    model = model_answering()
    await Agent.from_definition(define(**fields), tools=TOOLS, model=model).run_async("Go")
    assert tools_shown_to(model) == left


async def test_rules_of_the_context_restrict_the_tools_further() -> None:
    model = model_answering()
    agent = Agent.from_definition(define(tools=("Grep", "Bash")), tools=TOOLS, model=model)
    await agent.run_async("Go", get_context_with_tool_rules({"deny": ["Bash"]}))
    assert tools_shown_to(model) == ["Grep"]


async def test_hosted_mcp_servers_are_filtered_too() -> None:
    server = agents.HostedMCPTool(
        tool_config={
            "type": "mcp",
            "server_label": "wiki",
            "server_url": "http://127.0.0.1/",
            "require_approval": "never",
        }
    )
    for fields, left in (
        ({"tools": ("Grep",)}, ["Grep"]),
        ({"tools": ("mcp__wiki",)}, ["hosted_mcp"]),
        ({"tools": ("mcp__wiki__*",)}, ["hosted_mcp"]),
        ({"disallowed_tools": ("mcp__wiki",)}, ["FileRead", "Grep", "Bash", "Write"]),
    ):
        model = model_answering()
        await Agent.from_definition(define(**fields), tools=[*TOOLS, server], model=model).run_async("Go")
        assert tools_shown_to(model) == left


async def test_a_denied_tool_is_hidden_and_refused_in_another_case() -> None:
    model = model_answering("done", [function_call("bash", {"value": "x"}, call_id="1")])
    denying = define(disallowed_tools=("Bash",))
    await Agent.from_definition(denying, tools=[tool("bash"), tool("Read")], model=model).run_async("Go")
    assert tools_shown_to(model) == ["Read"]
    last = model.last_call
    assert last is not None
    assert last.input[-1]["output"].startswith("[kantan-agents][E8] Tool is not allowed: bash")


@pytest.mark.parametrize(
    ("name", "denied"),
    [
        ("GitHub: Issues", "mcp__GitHub__Issues"),
        ("GitHub: Issues", "mcp__github__issues__*"),
        ("a__b", "mcp__a__b"),
        ("git.hub", "mcp__git_hub"),
        ("git.hub", "mcp__git.hub"),
        ("GitHub", "mcp__github__delete"),
    ],
)
async def test_a_denied_mcp_server_is_denied_whatever_characters_its_name_has(
    name: str, denied: str, tmp_path: Path, preloaded: Preloaded
) -> None:
    command, *arguments = preloaded.command(Path(__file__).parents[1] / "tools" / "mcp_server.py", "stdio")
    params: Any = {
        "command": command,
        "args": arguments,
        "env": {**os.environ, "CALLS": str(tmp_path / "calls")},
    }
    async with MCPServerStdio(params, name=name, client_session_timeout_seconds=30) as server:
        model = model_answering("done", [function_call("delete", {"path": "x"}, call_id="1")])
        agent = Agent.from_definition(
            define(disallowed_tools=(denied,)), tools=TOOLS, mcp_servers=[server], model=model
        )
        await agent.run_async("Go")
    assert "delete" not in tools_shown_to(model)
    assert not (tmp_path / "calls").exists()


async def test_a_remark_about_tools_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    Agent.from_definition(define(tools=("Bash(rm * -rf)",)), tools=TOOLS, model=model_answering())
    assert "it grants nothing" in caplog.records[-1].remark  # type: ignore[attr-defined]


class TestModel:
    def test_without_a_model_in_the_file_the_given_model_is_used(self) -> None:
        model = model_answering()
        for name in (None, "inherit", "INHERIT", "main", " "):
            assert Agent.from_definition(define(model=name), model=model).sdk_agent.model is model

    def test_users_can_define_short_names(self) -> None:
        model, other = model_answering(), model_answering()
        agent = Agent.from_definition(define(model="Opus"), model=other, models={"opus": model})
        assert agent.sdk_agent.model is model

    def test_a_short_name_may_mean_the_given_model(self) -> None:
        model = model_answering()
        assert (
            Agent.from_definition(define(model="opus"), model=model, models={"opus": None}).sdk_agent.model
            is model
        )

    def test_the_built_in_short_names_are_models_of_anthropic(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CLAUDE_API_KEY", "x")
        for short in ("sonnet", "opus", "haiku", "claude-sonnet"):
            agent = Agent.from_definition(define(model=short))
            assert str(getattr(agent.sdk_agent.model, "name", "")) == MODELS[short]

    def test_a_full_id_goes_to_kantan_llm(self) -> None:
        with pytest.raises(ModelNotFoundError, match="no-such-model"):
            Agent.from_definition(define(model="no-such-model"), model=model_answering())

    def test_the_map_is_a_mapping(self) -> None:
        with pytest.raises(InvalidOptionError, match="short names"):
            Agent.from_definition(define(), models=["opus"])  # type: ignore[arg-type]

    @pytest.mark.parametrize("name", [None, "", "  "])
    def test_an_empty_model_name_means_no_model(self, name: str | None) -> None:
        assert model_of(name) is None


class TestContext:
    """The ``context`` field of a subagent file (上下文注入)."""

    async def test_it_is_added_to_the_run_context_and_to_the_instructions(self) -> None:
        model = model_answering()
        definition = define(
            context={"project": "shop", "limits": {"rows": 5}},
            system_prompt="You are a. Project: {{ $ctx.project }}.",
        )
        context = await Agent.from_definition(definition, model=model).run_async("Go")
        assert context["project"] == "shop"
        assert context["limits"] == {"rows": 5}
        assert context["limits"] is not definition.context["limits"]
        call = model.first_call
        assert call is not None
        assert call.system_instructions == (
            'You are a. Project: shop.\n\n# Context\n\nproject: shop\nlimits: {"rows": 5}'
        )

    async def test_values_of_the_caller_take_precedence(self) -> None:
        model = model_answering()
        agent = Agent.from_definition(define(context={"project": "shop"}), model=model)
        context = await agent.run_async("Go", {"project": "bank"})
        assert context["project"] == "bank"
        call = model.first_call
        assert call is not None
        assert str(call.system_instructions).endswith("project: bank")

    async def test_a_text_is_stored_under_the_key_context(self) -> None:
        model = model_answering()
        context = await Agent.from_definition(define(context="Be brief."), model=model).run_async("Go")
        assert context["context"] == "Be brief."
        call = model.first_call
        assert call is not None
        assert str(call.system_instructions).endswith("# Context\n\nBe brief.")

    async def test_its_values_are_not_rendered_as_templates(self) -> None:
        model = model_answering()
        agent = Agent.from_definition(define(context={"note": "{{ $ctx.secret }}"}), model=model)
        await agent.run_async("Go", {"secret": "s3cret"})
        call = model.first_call
        assert call is not None
        assert "s3cret" not in str(call.system_instructions)

    async def test_a_failed_run_removes_it_from_the_context(self) -> None:
        context: dict[str, Any] = {}
        agent = Agent.from_definition(define(context={"a": 1}), model=ScriptedModel([RuntimeError("no")]))
        with pytest.raises(RuntimeError):
            await agent.run_async("Go", context)
        assert "a" not in context

    async def test_a_change_by_a_tool_is_shown_in_the_next_turn(self) -> None:
        def move(context: agents.RunContextWrapper[Any]) -> str:
            """Change the context."""
            context.context["place"] = "there"
            return "moved"

        model = model_answering("done", [function_call("move", {}, call_id="1")])
        agent = Agent.from_definition(
            define(context={"place": "here"}), tools=[agents.function_tool(move)], model=model
        )
        await agent.run_async("Go")
        first, second = (str(call.system_instructions) for call in model.calls)
        assert first.endswith("place: here")
        assert second.endswith("place: there")

    async def test_a_custom_renderer_runs_before_it_is_added(self) -> None:
        async def render(text: str, context: dict[str, Any]) -> str:
            return text.upper()

        model = model_answering()
        agent = Agent.from_definition(define(context={"a": "b"}), model=model, renderer=render)
        await agent.run_async("Go")
        call = model.first_call
        assert call is not None
        assert call.system_instructions == "YOU ARE A.\n\n# Context\n\na: b"

    async def test_it_is_added_for_the_target_of_a_hand_off_too(self) -> None:
        model = model_answering("done", [function_call("transfer_to_a", {}, call_id="1")])
        target = Agent.from_definition(define(context={"place": "here"}), model=model)
        await Agent("front", "You are front.", model=model, handoffs=[target]).run_async("Go")
        call = model.last_call
        assert call is not None
        assert str(call.system_instructions).endswith("place: here")


class TestPrompt:
    def test_it_has_the_name_version_and_text_of_the_file(self) -> None:
        agent = Agent.from_definition(define(version="1.10"), model=model_answering())
        assert agent.instructions == Prompt("a", "1.10", "You are a.")

    def test_without_a_version_each_text_has_its_own_version(self) -> None:
        first, second = (
            Agent.from_definition(define(system_prompt=text), model=model_answering())
            for text in ("One.", "Two.")
        )
        assert isinstance(first.instructions, Prompt)
        assert isinstance(second.instructions, Prompt)
        assert first.instructions.version == hash_text("One.")[:12]
        assert first.instructions.version != second.instructions.version

    def test_a_blank_prompt_is_an_error_that_names_the_agent(self) -> None:
        with pytest.raises(EmptyPromptTextError) as caught:
            Agent.from_definition(define(system_prompt=" \n"), model=model_answering())
        assert "'a'" in caught.value.__notes__[0]


async def test_max_turns_of_the_file_is_the_default_for_runs() -> None:
    def turns() -> list[Any]:
        return [[function_call("Grep", {}, call_id=f"c{number}")] for number in range(3)]

    model = model_answering("done", *turns())
    with pytest.raises(agents.MaxTurnsExceeded):
        await Agent.from_definition(define(max_turns=2), tools=TOOLS, model=model).run_async("Go")
    model = model_answering("done", *turns())
    agent = Agent.from_definition(define(max_turns=2), tools=TOOLS, model=model)
    assert (await agent.run_async("Go", max_turns=5))["result"].final_output == "done"


async def test_other_options_are_passed_to_the_agent() -> None:
    agent = Agent.from_definition(define(), model=model_answering(), history=0, metadata={"team": "blue"})
    assert (agent.name, agent.history) == ("a", 0)
    assert agent.trace_metadata({}, "id")["team"] == "blue"
    assert repr(agent).endswith(f"prompt=a@{hash_text('You are a.')[:12]})")


def test_a_value_that_is_not_a_definition_is_rejected() -> None:
    with pytest.raises(InvalidOptionError, match="must be an AgentDefinition, not str"):
        Agent.from_definition("reviewer")  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["name", "instructions"])
def test_fields_of_the_definition_cannot_be_options(option: str) -> None:
    options: dict[str, Any] = {option: "x"}
    with pytest.raises(InvalidOptionError, match=f"{option}: is decided by the definition"):
        Agent.from_definition(define(), **options)


async def test_a_subclass_returns_an_instance_of_itself() -> None:
    class Mine(Agent):
        """A custom subclass."""

    assert type(Mine.from_definition(define(), model=model_answering())) is Mine


class TestToolsThatDoNotExist:
    """A file names tools that the agent does not have."""

    @pytest.mark.parametrize("brought", [(), (read,)])
    def test_they_are_logged_by_name_with_the_nearest_one(
        self, caplog: pytest.LogCaptureFixture, brought: Any
    ) -> None:
        with caplog.at_level(logging.WARNING, "kantan_agents.definitions"):
            Agent.from_definition(define(tools=["Read", "Grep"]), tools=brought, model=model_answering())
        [record] = caplog.records
        near = " (the nearest name is 'read')" if brought else ""
        assert record.message == f"tools: no tool of agent 'a' is named 'Read'{near}, 'Grep'"

    def test_they_are_an_error_if_the_agent_is_strict(self) -> None:
        with pytest.raises(InvalidToolRulesError, match=r"\[E20\].*'Grep'") as caught:
            Agent.from_definition(
                define(tools=["read", "Grep"]), tools=[read], model=model_answering(), strict=True
            )
        assert len(caught.value.problems) == 1

    def test_those_that_exist_or_may_come_later_are_not_named(self, caplog: pytest.LogCaptureFixture) -> None:
        tools = ["read", "r*", "mcp__github__get", "Task", "Agent(tester)", "ask_geo", "find_tools"]
        retrieval = ToolRetrieval(1)
        Agent.from_definition(
            define(tools=tools),
            tools=[read, *TOOLS, Agent("ask geo", "x", model=model_answering())],
            model=model_answering(),
            strict=True,
            tool_retrieval=retrieval,
        )
        assert not caplog.records

    async def test_a_subagent_whose_parent_lacks_its_tools_names_them(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        call = {"description": "d", "prompt": "p", "subagent_type": "a"}
        script: list[Any] = [[function_call("Task", call, call_id="c")], [assistant_message("done")]]
        child = define(tools=["Grep"])
        parent = Agent(
            "boss", "x", model=ScriptedModel(script), tools=[task_tool([child], model=model_answering())]
        )
        with caplog.at_level(logging.WARNING, "kantan_agents.definitions"):
            await parent.run_async("hi")
        assert [record.message for record in caplog.records] == [
            "tools: no tool of agent 'a' is named 'Grep'"
        ]
