"""``SlashCommands``: a person runs the agent's tools, through the whole pipeline of a run."""

from __future__ import annotations

import json
import logging
from typing import Any

import anyio
import pytest
from agents import (
    RunConfig,
    RunHooks,
    RunResult,
    SQLiteSession,
    ToolGuardrailFunctionOutput,
    ToolOutputImage,
    ToolOutputText,
    WebSearchTool,
    function_tool,
    tool_input_guardrail,
    tool_output_guardrail,
)
from agents.tool_context import ToolContext
from hypothesis import given, settings
from hypothesis import strategies as st

from kantan_agents import Agent, Middleware, SlashCommands, ToolRulesMode, UserRules
from kantan_agents.errors import (
    BudgetExceededError,
    CommandNotRunnableError,
    CommandSyntaxError,
    ContextTypeError,
    HistoryTypeError,
    InvalidOptionError,
    InvalidToolRulesError,
    ToolNotAllowedError,
    ToolParameterError,
    ToolRulesTypeError,
    UnknownCommandError,
)
from kantan_agents.middleware import Approve, Budget, Deadline, Redact, Retry, ToolErrors
from kantan_agents.middleware.slash_commands.rules import user_layers
from kantan_agents.testing import ScriptedModel, assistant_message
from kantan_agents.tool_rules import RuleLayers, ToolFacts, ToolRules
from tests.conftest import TraceDB

ALL = ToolRulesMode.ALLOW_ALL


def read(path: str, limit: int = 10) -> str:
    """Read a file."""
    return f"{limit} lines of {path}"


def shell(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


def agent(*tools: Any, rules: Any = ALL, around: Any = (), script: Any = (), **options: Any) -> Agent:
    commands = {name: options.pop(name) for name in ("aliases", "prefix") if name in options}
    middleware = [*around, SlashCommands(rules, **commands)]
    model = ScriptedModel([[assistant_message(text)] for text in script])
    return Agent("a", "x", model=model, tools=tools or (read, shell), middleware=middleware, **options)


async def answer(made: Agent, text: str, context: Any = None, **options: Any) -> Any:
    return (await made.run_async(text, context, **options))["result"].final_output


class TestAnswer:
    async def test_a_command_runs_the_tool_without_the_model(self) -> None:
        context = await agent().run_async("/read notes.txt 5")
        result = context["result"]
        assert isinstance(result, RunResult)
        assert result.final_output == "5 lines of notes.txt"
        assert context["history"] == [
            {"role": "user", "text": "/read notes.txt 5"},
            {"role": "assistant", "text": "5 lines of notes.txt"},
        ]
        assert result.raw_responses == []
        assert result.context_wrapper.usage.requests == 0
        assert result.last_agent.name == "a"
        assert [item.type for item in result.new_items] == ["tool_call_item", "tool_call_output_item"]

    async def test_the_next_run_of_a_model_sees_the_call(self) -> None:
        made = agent(script=["Fine."])
        first = (await made.run_async("/read a.txt"))["result"]
        await made.run_async([*first.to_input_list(), {"role": "user", "content": "And?"}])
        sent = made.sdk_agent.model.last_call.input
        assert [item.get("type", item.get("role")) for item in sent] == [
            "user",
            "function_call",
            "function_call_output",
            "user",
        ]
        assert sent[1]["call_id"] == sent[2]["call_id"]
        assert json.loads(sent[1]["arguments"]) == {"path": "a.txt"}

    async def test_a_session_of_the_sdk_stores_the_call(self) -> None:
        session = SQLiteSession("one")
        made = agent(script=["Fine."])
        await made.run_async("/read a.txt", session=session)
        await made.run_async("And?", session=session)
        assert len(made.sdk_agent.model.last_call.input) == 4
        session.close()

    async def test_a_stream_emits_events_of_the_call(self) -> None:
        async with agent().stream("/read a.txt") as run:
            events = [event async for event in run]
        types = [event.type for event in events if not event.type.startswith("stage")]
        assert types == ["run_started", "tool_call_started", "tool_call_finished", "run_finished"]
        assert run.context["result"].final_output == "10 lines of a.txt"

    def test_the_sync_run_works(self) -> None:
        assert agent().run("/read a.txt")["result"].final_output == "10 lines of a.txt"

    @pytest.mark.parametrize(
        ("output", "text"),
        [
            (None, ""),
            ("text", "text"),
            ({"a": ["é"]}, '{"a": ["é"]}'),
            ([1, 2], "[1, 2]"),
            (3, "3"),
            (True, "true"),
            (ToolOutputText(text="said"), "said"),
            (ToolOutputImage(image_url="data:image/png;base64,AA=="), "[image image/png]"),
            ({1, 2}, "[1, 2]"),
        ],
    )
    async def test_the_result_is_the_final_output_as_text_and_an_item_unchanged(
        self, output: Any, text: str
    ) -> None:
        @function_tool
        def give() -> Any:
            return output

        context = await agent(give, output_dest="out").run_async("/give")
        assert context["result"].final_output == text
        assert context["result"].new_items[-1].output == output
        assert "out" not in context, "a tool's result is not an output of the agent"

    async def test_a_tool_that_fails_raises_its_own_error(self) -> None:
        @function_tool
        def fail(path: str) -> str:
            raise OSError(f"no {path}")

        made = agent(fail)
        context: dict[str, Any] = {}
        with pytest.raises(OSError, match=r"^no a\.txt$") as caught:
            await made.run_async("/fail a.txt", context)
        assert caught.value.kantan_run.input == "/fail a.txt"  # type: ignore[attr-defined]
        assert (context["result"], context["history"]) == (None, [])

    async def test_the_tool_gets_a_complete_context(self) -> None:
        seen: list[ToolContext[Any]] = []

        @function_tool
        def look(context: ToolContext[Any], x: str) -> str:
            seen.append(context)
            return context.context["user"]  # type: ignore[no-any-return]

        made = agent(look)
        assert await answer(made, "/look 1", {"user": "Kim"}) == "Kim"
        assert seen[0].agent is made.sdk_agent
        assert (seen[0].tool_name, json.loads(seen[0].tool_arguments)) == ("look", {"x": "1"})
        assert seen[0].run_config is not None
        assert seen[0].tool_call is not None


class TestOtherText:
    @pytest.mark.parametrize("text", ["read a", " /read a", "a /read", ""])
    async def test_any_other_text_is_sent_to_the_model(self, text: str) -> None:
        made = agent(script=["Hi."])
        assert await answer(made, text) == "Hi."
        assert made.sdk_agent.model.last_call.input == [{"role": "user", "content": text}]

    async def test_input_items_are_sent_to_the_model(self) -> None:
        made = agent(script=["Hi."])
        assert await answer(made, [{"role": "user", "content": "/shell rm"}]) == "Hi."  # type: ignore[arg-type]

    @given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.sampled_from(["/", "!", "::"]))
    @settings(max_examples=25)
    async def test_a_doubled_prefix_is_sent_to_the_model_as_one(self, text: str, prefix: str) -> None:
        made = agent(script=["Hi."], prefix=prefix)
        context = await made.run_async(prefix * 2 + text)
        assert made.sdk_agent.model.last_call.input == [{"role": "user", "content": prefix + text}]
        assert context["history"][0]["text"] == prefix + text

    async def test_an_escaped_text_that_is_retried_is_still_not_a_command(self) -> None:
        async def twice(run: Any, call_next: Any) -> None:
            await call_next(run)
            await call_next(run)

        made = agent(script=["One.", "Two."], around=[twice])
        assert await answer(made, "//shell rm") == "Two."
        assert made.sdk_agent.model.last_call.input == [{"role": "user", "content": "/shell rm"}]

    async def test_another_prefix(self) -> None:
        made = agent(script=["Hi."], prefix="!")
        assert await answer(made, "!shell ls") == "ran ls"
        assert await answer(made, "/shell ls") == "Hi."
        with pytest.raises(UnknownCommandError, match=r"Unknown command !no\. .*!help.*!!"):
            await made.run_async("!no")


class TestErrors:
    async def test_an_unknown_command_suggests_the_nearest_allowed_one(self) -> None:
        with pytest.raises(UnknownCommandError, match="Did you mean /read"):
            await agent().run_async("/raed a")
        with pytest.raises(UnknownCommandError) as caught:
            await agent(rules={"allow": ["read"]}).run_async("/shel ls")
        assert "shell" not in str(caught.value)

    async def test_a_path_is_an_unknown_command_and_the_error_explains_the_escape(self) -> None:
        with pytest.raises(UnknownCommandError, match="type //"):
            await agent().run_async("/etc/hosts is what?")

    @pytest.mark.parametrize(
        "text", ["/", "/ ", "/\n", "/read a\0", "/read \ud800", '/read "a', "/read", "/read a b"]
    )
    async def test_text_that_cannot_be_parsed_raises_e55(self, text: str) -> None:
        with pytest.raises(CommandSyntaxError):
            await agent().run_async(text)

    async def test_long_and_deeply_nested_arguments(self) -> None:
        assert await answer(agent(), "/shell " + "x" * 100_000) == "ran " + "x" * 100_000
        with pytest.raises(CommandSyntaxError):
            await agent().run_async("/shell " + '{"command": ' + "[" * 100_000)

        @function_tool(strict_mode=False)
        def take(data: dict[str, Any]) -> str:
            return "taken"

        for depth in (100, 900, 5000):  # whether it is too deep depends on how much of the stack is left
            text = "/take data=" + '{"a":' * depth + "1" + "}" * depth
            try:
                assert await answer(agent(take), text) == "taken"
            except CommandSyntaxError:
                assert depth > 100

    @pytest.mark.parametrize(
        ("context", "error"),
        [
            ([], ContextTypeError),
            ({"history": 5}, HistoryTypeError),
            ({"tool_rules": {"alow": []}}, InvalidToolRulesError),
            ({"user_rules": {"allow": "*"}}, ToolRulesTypeError),
            ({"user_rules": 5}, ToolRulesTypeError),
            ({"user_rules": "all"}, ToolRulesTypeError),
        ],
    )
    async def test_an_invalid_context_raises_before_the_tool_runs(self, context: Any, error: Any) -> None:
        ran: list[str] = []

        @function_tool
        def note(text: str) -> str:
            ran.append(text)
            return text

        with pytest.raises(error):
            await agent(note).run_async("/note it", context)
        assert ran == []

    @pytest.mark.parametrize("rules", [None, 5, "all", ["read"]])
    def test_the_rules_for_users_are_required(self, rules: Any) -> None:
        with pytest.raises(ToolRulesTypeError):
            SlashCommands(rules)
        with pytest.raises(TypeError):
            SlashCommands()  # type: ignore[call-arg]

    def test_invalid_options_raise_errors(self) -> None:
        for options in ({"prefix": ""}, {"aliases": {"a": "a"}}, {"aliases": {"help": "read"}}):
            with pytest.raises(InvalidOptionError):
                SlashCommands(ALL, **options)

    @pytest.mark.parametrize("aliases", [{"r": "nothing"}, {"shell": "read"}])
    async def test_aliases_without_a_matching_tool_raise_an_error(self, aliases: Any) -> None:
        with pytest.raises(InvalidOptionError, match="aliases"):
            await agent(aliases=aliases).run_async("/read a")


class TestHelp:
    async def test_help_lists_what_this_user_may_run(self) -> None:
        made = agent(rules={"deny": ["shell"]}, aliases={"r": "read"})
        assert await answer(made, "/help") == (
            "/help [COMMAND]: List the commands, or explain one.\n/read PATH [--limit LIMIT]: Read a file."
        )
        assert "/shell" in await answer(agent(), "/help")
        assert "/read" not in await answer(made, "/help", {"user_rules": UserRules({"deny": "*"})})

    @pytest.mark.parametrize("text", ["/help read", "/help /read", "/help r", "/help --command read"])
    async def test_help_explains_one_command(self, text: str) -> None:
        output = await answer(agent(aliases={"r": "read"}), text)
        assert output.startswith("/read PATH [--limit LIMIT]\n\nRead a file.\n")
        assert output.endswith("Also: /r")

    async def test_a_command_that_a_user_may_not_run_is_not_explained(self) -> None:
        with pytest.raises(UnknownCommandError) as caught:
            await agent(rules={"allow": ["read"]}).run_async("/help shell")
        assert "shell" not in caught.value.nearest

    async def test_help_suggests_aliases_of_what_a_user_may_run(self) -> None:
        aliases = {"lesen": "read", "leiten": "shell"}
        with pytest.raises(UnknownCommandError) as caught:
            await agent(rules={"allow": ["read"]}, aliases=aliases).run_async("/help lesn")
        assert caught.value.nearest == ("lesen",)

    async def test_the_output_of_help_is_a_message(self) -> None:
        result = (await agent().run_async("/help"))["result"]
        assert [item["role"] for item in result.to_input_list()] == ["user", "assistant"]

    async def test_a_tool_named_help_is_reached_by_an_alias(self) -> None:
        @function_tool(name_override="help")
        def own(about: str) -> str:
            return f"own help about {about}"

        made = agent(own, aliases={"assist": "help"})
        assert await answer(made, "/assist me") == "own help about me"
        assert (await answer(made, "/help")).startswith("/help [COMMAND]")

    async def test_help_lists_hundreds_of_commands(self) -> None:
        tools = [function_tool(read, name_override=f"read_{number}") for number in range(150)]
        made = agent(*tools, rules={"deny": ["read_1"]})
        assert len((await answer(made, "/help")).splitlines()) == 150
        assert await answer(made, "/read_149 a") == "10 lines of a"
        with pytest.raises(UnknownCommandError, match="Did you mean /read_149"):
            await made.run_async("/raed_149 a")

    async def test_a_tool_that_is_changed_or_added_is_seen(self) -> None:
        made = agent()
        assert await answer(made, "/read a") == "10 lines of a"
        made.sdk_agent.tools.append(function_tool(read, name_override="late"))
        assert await answer(made, "/late a 3") == "3 lines of a"


class TestRules:
    async def test_the_rules_for_models_do_not_apply_to_users(self) -> None:
        context = {"tool_rules": {"deny": "*"}}
        assert await answer(agent(rules={"allow": ["read"]}), "/read a", context) == "10 lines of a"

    @pytest.mark.parametrize(
        "rules", [{"deny": ["shell"]}, {"allow": ["read"]}, {"allow": []}, ToolRulesMode.DENY_ALL]
    )
    async def test_a_command_that_is_not_allowed_is_refused_with_e8(
        self, rules: Any, traces: TraceDB
    ) -> None:
        context = {"tool_rules": {"allow": "*"}}
        with pytest.raises(ToolNotAllowedError, match=r"\[E8\] Tool is not allowed: shell"):
            await agent(rules=rules).run_async("/shell", context)
        refused = [span for span in traces.spans() if span.name == "tool_refused"]
        assert len(refused) == 1

    async def test_arguments_are_checked_by_the_rules(self) -> None:
        rules = {"allow": ["read"], "params": {"read": {"limit": {"maximum": 5}}}}
        with pytest.raises(ToolParameterError):
            await agent(rules=rules).run_async("/read a 6")
        assert await answer(agent(rules=rules), "/read a 5") == "5 lines of a"
        only = agent(rules={"allow": ["shell(ls:*)"]})
        assert await answer(only, "/shell ls -l") == "ran ls -l"
        with pytest.raises(ToolNotAllowedError):
            await only.run_async("/shell rm -r")

    @pytest.mark.parametrize(
        "rules",
        [
            {"deny": ["sh"]},
            {"deny": ["s"]},
            {"deny": ["s?"]},
            {"deny": ["sh(rm:*)"]},
            {"params": {"sh": {"command": {"pattern": "^ls"}}}},
            {"params": {"sh": {"command": {"pattern": "^ls"}}, "shell": {"command": {"pattern": ""}}}},
            {"allow": ["sh(ls:*)"]},
            {"allow": ["sh*"], "deny": ["shell"]},
            {"allow": ["s?"]},
        ],
    )
    async def test_a_rule_that_names_an_alias_applies_to_its_tool(self, rules: Any) -> None:
        aliases = {"s": "sh", "sh": "shell"}
        for text in ("/sh rm x", "/s rm x", "/shell rm x"):
            for made, context in (
                (agent(rules=rules, aliases=aliases), {}),
                (agent(rules={}, aliases=aliases), {"user_rules": UserRules(rules)}),
            ):
                with pytest.raises((ToolNotAllowedError, ToolParameterError)):
                    await made.run_async(text, context)

    async def test_allowing_an_alias_allows_the_tool_but_lifts_no_limit(self) -> None:
        for rules in ({"allow": ["sh"]}, {"allow": ["sh(ls:*)"]}):
            made = agent(rules=rules, aliases={"sh": "shell"})
            assert await answer(made, "/shell ls") == "ran ls"
            assert "/shell" in await answer(made, "/help")
        layers_of_models = RuleLayers(limits=(("file", ToolRules.parse({"allow": ["sh"]})),))
        layers = user_layers(ToolRules(), {}, layers_of_models, {"sh": "shell"})
        assert not layers.decide_tool(ToolFacts(("shell",))).allowed

    async def test_the_rules_of_a_run_are_merged(self) -> None:
        made = agent(rules={"allow": ["read"], "deny": ["shell(rm:*)"]})
        context = {"user_rules": UserRules({"allow": ["shell"]})}
        assert await answer(made, "/shell ls", dict(context)) == "ran ls"
        with pytest.raises(ToolNotAllowedError):
            await made.run_async("/shell rm", dict(context))
        with pytest.raises(ToolNotAllowedError):
            await made.run_async("/read a", {"user_rules": ToolRulesMode.DENY_ALL})

    @pytest.mark.parametrize("policy", ["feedback", "raise"])
    async def test_the_violation_policy_for_models_does_not_apply(self, policy: Any) -> None:
        with pytest.raises(ToolNotAllowedError):
            await agent(rules={"deny": ["shell"]}, on_rule_violation=policy).run_async("/shell ls")

    async def test_observers_receive_a_refusal(self) -> None:
        made = agent(rules={"deny": ["shell"]})
        seen: list[Any] = []
        made.subscribe(seen.append)
        with pytest.raises(ToolNotAllowedError):
            await made.run_async("/shell ls")
        refusal = [event for event in seen if event.type == "tool_call_denied"]
        assert [(event.tool, event.code) for event in refusal] == [("shell", "E8")]


class TestToolFeatures:
    async def test_a_disabled_tool_is_not_a_command(self) -> None:
        off = function_tool(read, is_enabled=lambda context, _agent: context.context.get("on", False))
        assert await answer(agent(off), "/read a", {"on": True}) == "10 lines of a"
        with pytest.raises(ToolNotAllowedError):
            await agent(off).run_async("/read a")
        assert "/read" not in await answer(agent(off), "/help")

    async def test_a_command_needs_no_approval(self) -> None:
        tool = function_tool(read, needs_approval=True)
        assert await answer(agent(tool, around=[Approve("read")]), "/read a") == "10 lines of a"

    async def test_the_timeout_of_the_tool_applies(self) -> None:
        async def wait() -> str:
            await anyio.sleep_forever()
            return ""

        output = await answer(agent(function_tool(wait, timeout=0.01)), "/wait")
        assert "timed out" in output

    async def test_the_guardrails_of_the_tool_apply(self) -> None:
        @tool_input_guardrail
        def no_secrets(data: Any) -> ToolGuardrailFunctionOutput:
            if "secret" in data.context.tool_arguments:
                return ToolGuardrailFunctionOutput.reject_content("no secrets")
            return ToolGuardrailFunctionOutput.allow()

        @tool_output_guardrail
        def no_ten(data: Any) -> ToolGuardrailFunctionOutput:
            if str(data.output).startswith("10"):
                return ToolGuardrailFunctionOutput.reject_content("too many")
            if str(data.output).startswith("99"):
                return ToolGuardrailFunctionOutput.raise_exception()
            return ToolGuardrailFunctionOutput.allow()

        tool = function_tool(read)
        tool.tool_input_guardrails, tool.tool_output_guardrails = [no_secrets], [no_ten]
        made = agent(tool)
        assert await answer(made, "/read secret.txt") == "no secrets"
        assert await answer(made, "/read a") == "too many"
        context = await made.run_async("/read a 5")
        assert context["result"].final_output == "5 lines of a"
        assert len(context["result"].tool_output_guardrail_results) == 1
        with pytest.raises(Exception, match="Tool output guardrail"):
            await made.run_async("/read a 99")

    async def test_hosted_tools_cannot_be_run(self) -> None:
        made = agent(WebSearchTool())
        with pytest.raises(CommandNotRunnableError, match=r"\[E56\] Cannot run /web_search"):
            await made.run_async("/web_search cats")
        assert "web_search" not in await answer(made, "/help")

    async def test_hooks_of_the_run_are_called(self) -> None:
        seen: list[Any] = []

        class Hooks(RunHooks[Any]):
            async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
                seen.append(("start", tool.name))

            async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
                seen.append(("end", result))

        await agent().run_async("/read a", hooks=Hooks())
        assert seen == [("start", "read"), ("end", "10 lines of a")]


class TestMiddleware:
    async def test_other_middleware_wraps_the_call(self) -> None:
        seen: list[str] = []

        class Around(Middleware):
            async def tool_call(self, call: Any, call_next: Any) -> Any:
                seen.append(call.arguments)
                call.arguments = json.dumps({"command": "pwd"})
                return f"<{await call_next(call)}>"

        made = agent(around=[Around()], rules={"deny": ["shell(ls:*)"]})
        assert await answer(made, "/shell ls") == "<ran pwd>"
        assert seen == ['{"command": "ls"}']

    async def test_the_rules_check_arguments_after_middleware_changed_them(self) -> None:
        class Worse(Middleware):
            async def tool_call(self, call: Any, call_next: Any) -> Any:
                call.arguments = json.dumps({"command": "rm"})
                return await call_next(call)

        with pytest.raises(ToolNotAllowedError):
            await agent(around=[Worse()], rules={"deny": ["shell(rm:*)"]}).run_async("/shell ls")

    async def test_ready_made_middleware_works(self) -> None:
        @function_tool
        def fail() -> str:
            raise OSError("secret")

        around = [Redact(), Deadline(60), Budget(max_tool_calls=9), Retry(tools=["fail"]), ToolErrors()]
        output = await answer(agent(read, around=around), "/read a")
        assert output == "10 lines of a"
        output = await answer(agent(fail, around=[ToolErrors()]), "/fail")
        assert output == "The tool fail failed. There is no result."
        first = Agent(
            "a", "x", model=ScriptedModel([]), tools=[read], middleware=[SlashCommands(ALL), *around]
        )
        assert await answer(first, "/read a") == "10 lines of a"
        with pytest.raises(BudgetExceededError):
            await agent(around=[Budget(max_tool_calls=0)]).run_async("/read a")

    async def test_a_text_written_by_middleware_is_not_a_command(self) -> None:
        async def rewrite(run: Any, call_next: Any) -> None:
            run.input = "/shell rm"
            await call_next(run)

        for typed in ("hello", "//hello"):
            made = agent(around=[rewrite], script=["Hi."])
            assert await answer(made, typed) == "Hi."
            assert made.sdk_agent.model.last_call.input == [{"role": "user", "content": "/shell rm"}]

    async def test_middleware_may_change_the_arguments_but_not_the_command(self) -> None:
        async def rewrite(run: Any, call_next: Any) -> None:
            run.input = "/shell rm"
            await call_next(run)

        assert await answer(agent(around=[rewrite]), "/shell ls") == "ran rm"
        with pytest.raises(CommandNotRunnableError, match="a middleware has replaced the command"):
            await agent(around=[rewrite]).run_async("/read a")


class TestAfterTheTool:
    async def test_a_command_needs_no_instructions(self) -> None:
        def fail(_text: str, _context: Any) -> str:
            raise LookupError("no template")

        made = agent(renderer=fail, script=["Hi."])
        assert await answer(made, "/read a") == "10 lines of a"
        with pytest.raises(LookupError):
            await made.run_async("Hello")

    async def test_failing_metadata_raise_before_the_tool_runs(self) -> None:
        ran: list[str] = []

        @function_tool
        def note(text: str) -> str:
            ran.append(text)
            return text

        def fail(_context: Any) -> Any:
            raise LookupError("no metadata")

        class Failing(Middleware):
            async def run(self, run: Any, call_next: Any) -> None:
                await call_next(run)

            def trace_metadata(self, run: Any) -> Any:
                raise LookupError("no metadata")

        for made in (agent(note, metadata=fail), agent(note, around=[Failing()])):
            with pytest.raises(LookupError, match="no metadata"):
                await made.run_async("/note it")
        assert ran == []

    async def test_a_later_error_still_carries_the_result_of_the_tool(self) -> None:
        class Full(SQLiteSession):
            async def add_items(self, items: Any) -> None:
                raise OSError("disk full")

        context: dict[str, Any] = {}
        session = Full("s")
        with pytest.raises(OSError, match="disk full") as caught:
            await agent().run_async("/read a", context, session=session)
        session.close()
        assert caught.value.kantan_run.result.final_output == "10 lines of a"  # type: ignore[attr-defined]
        assert (context["result"], context["history"]) == (None, [])


class TestRecord:
    async def test_the_trace_records_the_user_as_the_trigger(self, traces: TraceDB) -> None:
        made = agent(script=["Hi."], metadata={"trigger": "mine", "agent_name": "mine"})
        await made.run_async("Hello")
        await made.run_async("/read notes.txt")
        by_trigger = traces.traces(metadata={"trigger": "user"})
        assert len(by_trigger) == 1
        assert (by_trigger[0].metadata or {})["agent_name"] == "a"
        spans = traces.spans(trace_id=by_trigger[0].trace_id)
        function = [span for span in spans if span.span_type == "function"]
        assert [span.name for span in function] == ["read"]
        (final,) = [span for span in spans if span.span_type == "generation"]
        assert (final.input, final.output) == ("/read notes.txt", "10 lines of notes.txt")

    async def test_sensitive_data_are_not_recorded_if_excluded(self, traces: TraceDB) -> None:
        config = RunConfig(trace_include_sensitive_data=False)
        await agent().run_async("/read notes.txt", run_config=config)
        assert "notes.txt" not in str(traces.spans())
        with pytest.raises(CommandSyntaxError):
            await agent().run_async(
                "/read secret x", run_config=RunConfig(trace_include_sensitive_data=False)
            )
        assert "secret" not in str(traces.spans())

    async def test_middleware_may_add_metadata_but_not_override_standard_keys(self, traces: TraceDB) -> None:
        class Metadata(Middleware):
            async def run(self, run: Any, call_next: Any) -> None:
                await call_next(run)

            def trace_metadata(self, run: Any) -> Any:
                if run.input == "bad":
                    raise LookupError("no metadata")
                return {"tenant": "acme", "agent_name": "mine", "share": float("nan")}

        made = agent(around=[Metadata()], script=["Hi."], metadata={"tenant": "mine", "mine": 1})
        await made.run_async("Hello")
        with pytest.raises(LookupError):
            await made.run_async("bad")
        first, second = (trace.metadata or {} for trace in reversed(traces.traces()))
        assert (first["tenant"], first["mine"], first["agent_name"]) == ("acme", 1, "a")
        assert first["share"] is None
        assert second["agent_name"] == "a"

    async def test_nothing_is_recorded_without_tracing(self, traces: TraceDB) -> None:
        await agent().run_async("/read notes.txt", run_config=RunConfig(tracing_disabled=True))
        assert traces.spans() == []

    async def test_a_command_is_logged_without_its_arguments(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.INFO, "kantan_agents"):
            await agent().run_async("/read notes.txt")
        lines = [record.getMessage() for record in caplog.records if "command run" in record.getMessage()]
        assert len(lines) == 1
        assert "notes.txt" not in lines[0]


async def test_concurrent_runs_do_not_affect_each_other() -> None:
    both = anyio.Event()
    waiting: list[str] = []

    @function_tool
    async def meet(name: str) -> str:
        waiting.append(name)
        if len(waiting) == 2:
            both.set()
        await both.wait()
        return name

    made = agent(meet)
    answers: dict[str, Any] = {}

    async def ask(name: str, rules: Any) -> None:
        answers[name] = await answer(made, f"/meet {name}", {"user_rules": UserRules(rules)})

    async with anyio.create_task_group() as group:
        group.start_soon(ask, "x", {"deny": ["shell"]})
        group.start_soon(ask, "y", {"deny": ["read"]})
    assert answers == {"x": "x", "y": "y"}


async def test_a_cancelled_command_leaves_the_context_unchanged() -> None:
    started = anyio.Event()

    @function_tool
    async def hang() -> str:
        started.set()
        await anyio.sleep_forever()
        return ""

    context: dict[str, Any] = {}
    async with anyio.create_task_group() as group:
        group.start_soon(agent(hang).run_async, "/hang", context)
        await started.wait()
        group.cancel_scope.cancel()
    assert context["result"] is None


def test_repr_shows_the_options() -> None:
    made = SlashCommands({"allow": ["read"]}, aliases={"r": "read"}, prefix="!")
    assert "read" in repr(made)
    assert "prefix='!'" in repr(made)
