"""Human approval of tool calls: paused runs, resumed here or in another process, and handlers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents import Agent as SDKAgent
from agents import HostedMCPTool, LocalShellTool, ShellTool, WebSearchTool, function_tool
from openai.types.responses.response_output_item import LocalShellCall, LocalShellCallAction

from kantan_agents import Agent, Middleware
from kantan_agents.errors import ApprovalStateError, InvalidOptionError, MiddlewareResultError
from kantan_agents.middleware import (
    Approve,
    Approved,
    PendingCall,
    Rejected,
    decide,
    pending,
    resume,
    to_json,
)
from kantan_agents.testing import (
    OfflineServer,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)
from tests.programs import Preloaded

KEY = "a key for these tests only"


async def approve_all(_call: PendingCall) -> Any:
    return Approved()


class Bank:
    """Tools of a bank, and the payments made with them."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    @property
    def tools(self) -> list[Any]:
        def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return f"paid {amount}"

        def balance() -> str:
            """Return the balance."""
            return "100 left"

        return [pay, balance]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KANTAN_AGENTS_KEY", KEY)


@pytest.fixture
def bank() -> Bank:
    return Bank()


def pays(*amounts: int) -> list[Any]:
    return [function_call("pay", {"amount": amount}, call_id=f"c{amount}") for amount in amounts]


def agent(bank: Bank, model: ScriptedModel, *middleware: Any, **options: Any) -> Agent:
    return Agent("clerk", "Pay.", model=model, tools=bank.tools, middleware=middleware, **options)


def outputs(model: ScriptedModel) -> dict[str, str]:
    """Return the tool results that the model received, by call id."""
    assert model.last_call is not None
    items = [item for item in model.last_call.input if item.get("type") == "function_call_output"]
    return {item["call_id"]: item["output"] for item in items}


async def run(agent: Agent, how: str, input: Any = "Go.", context: Any = None) -> dict[str, Any]:
    if how == "run_async":
        return await agent.run_async(input, context)
    async with agent.stream(input, context) as stream:
        async for _ in stream:
            pass
        return stream.context


@pytest.mark.parametrize("how", ["run_async", "stream"])
@pytest.mark.parametrize("policy", ["pay", ["p*"], ("p?y", "pay"), lambda call: call.tool == "pay"])
async def test_a_call_that_matches_the_policy_waits_and_the_run_ends_without_an_answer(
    bank: Bank, policy: Any, how: str
) -> None:
    asked = [function_call("balance", {}, call_id="b"), *pays(5)]
    context = await run(agent(bank, ScriptedModel([asked]), Approve(policy)), how)
    (call,) = pending(context)
    assert (call.call_id, call.tool, call.values, call.agent) == ("c5", "pay", {"amount": 5}, "clerk")
    assert context["history"] == []
    assert bank.paid == []


async def test_an_async_policy_receives_the_call_and_only_calls_it_selects_wait(bank: Bank) -> None:
    seen: list[PendingCall] = []

    async def policy(call: PendingCall) -> bool:
        seen.append(call)
        return bool(call.values.get("amount", 0) > 10)

    context = await agent(bank, ScriptedModel([pays(5, 50)]), Approve(policy)).run_async("Go.")
    assert bank.paid == [5]
    assert [call.call_id for call in pending(context)] == ["c50"]
    assert PendingCall("c50", "pay", '{"amount": 50}', "clerk") in seen


@pytest.mark.parametrize("how", ["run_async", "stream"])
async def test_calls_are_approved_edited_and_rejected_one_by_one(bank: Bank, how: str) -> None:
    model = ScriptedModel([pays(1, 2, 3), [assistant_message("Done.")]])
    clerk = agent(bank, model, Approve("pay"))
    text = to_json(await run(clerk, how, context={"user": "Aiko"}))
    decisions: dict[str, Any] = {
        "c1": Approved(),
        "c2": Approved({"amount": 20}),
        "c3": Rejected("Not on Sundays."),
    }
    context = await run(clerk, how, await decide(clerk, text, decisions))
    assert sorted(bank.paid) == [1, 20]
    assert outputs(model) == {"c1": "paid 1", "c2": "paid 20", "c3": "Not on Sundays."}
    assert context["result"].final_output == "Done."
    assert context["user"] == "Aiko"
    assert [entry["text"] for entry in context["history"]] == ["Go.", "Done."]


async def test_a_call_without_a_decision_keeps_waiting(bank: Bank) -> None:
    model = ScriptedModel([pays(1, 2), [assistant_message("Done.")]])
    clerk = agent(bank, model, Approve("pay"))
    context = await resume(clerk, to_json(await clerk.run_async("Go.")), {"c1": Approved()})
    assert [call.call_id for call in pending(context)] == ["c2"]
    context = await resume(clerk, to_json(context), {"c2": Approved({"amount": 22})})
    assert bank.paid == [1, 22]
    assert context["result"].final_output == "Done."


async def test_a_later_call_of_a_resumed_run_waits_again(bank: Bank) -> None:
    model = ScriptedModel([pays(1), pays(2), [assistant_message("Done.")]])
    clerk = agent(bank, model, Approve("pay"))
    context = await resume(clerk, to_json(await clerk.run_async("Go.")), {"c1": Approved()})
    assert bank.paid == [1]
    assert [call.call_id for call in pending(context)] == ["c2"]


PROGRAM = '''
import asyncio, sys
from agents import set_trace_processors
from kantan_agents import Agent
from kantan_agents.middleware import Approve, Approved, Rejected, resume
from kantan_agents.testing import ScriptedModel, assistant_message

set_trace_processors([])
paid = []

def pay(amount: int) -> str:
    """Pay."""
    paid.append(amount)
    return f"paid {amount}"

def balance() -> str:
    """Return the balance."""
    return "100 left"

async def main():
    model = ScriptedModel([[assistant_message("Done.")]])
    clerk = Agent("clerk", "Pay.", model=model, tools=[pay, balance], middleware=[Approve("pay")])
    text = open(sys.argv[1], encoding="utf-8").read()
    decisions = {"c1": Approved(), "c2": Approved('{"amount": 20}'), "c3": Rejected("Not on Sundays.")}
    context = await resume(clerk, text, decisions, key="a key for these tests only")
    results = [item["output"] for item in model.calls[0].input if item.get("type") == "function_call_output"]
    print(sorted(paid), sorted(results), context["result"].final_output, context["user"], context["history"])

asyncio.run(main())
'''


async def test_a_stored_run_is_resumed_in_another_process(
    bank: Bank, tmp_path: Path, preloaded: Preloaded
) -> None:
    context = await agent(bank, ScriptedModel([pays(1, 2, 3)]), Approve("pay")).run_async(
        "Go.", {"user": "Aiko"}
    )
    stored, program = tmp_path / "run.json", tmp_path / "program.py"
    stored.write_text(to_json(context), encoding="utf-8")
    program.write_text(PROGRAM, encoding="utf-8")
    finished = preloaded.run(["-W", "error", program, stored])
    assert finished.returncode == 0, finished.stderr
    history = [{"role": "user", "text": "Go."}, {"role": "assistant", "text": "Done."}]
    results = ["Not on Sundays.", "paid 1", "paid 20"]
    assert finished.stdout == f"[1, 20] {results} Done. Aiko {history}\n"


@pytest.mark.parametrize(
    ("rules", "decision", "code"),
    [
        ({"deny": ["pay"]}, Approved(), "[E8]"),
        ({"params": {"pay": {"amount": {"maximum": 9}}}}, Approved({"amount": 10}), "[E17]"),
        ({"params": {"pay": {"amount": {"maximum": 3}}}}, Approved(), "[E17]"),
    ],
)
async def test_the_rules_refuse_an_approved_call(
    bank: Bank, rules: dict[str, Any], decision: Approved, code: str
) -> None:
    model = ScriptedModel([pays(5), [assistant_message("Done.")]])
    clerk = agent(bank, model, Approve("pay"))
    context = await clerk.run_async("Go.")
    context["tool_rules"] = rules
    await resume(clerk, to_json(context), {"c5": decision}, context)
    assert bank.paid == []
    assert code in outputs(model)["c5"]


async def test_a_hidden_tool_is_refused_without_asking_for_approval(bank: Bank) -> None:
    model = ScriptedModel([pays(5), [assistant_message("Done.")]])
    context = await agent(bank, model, Approve("pay")).run_async("Go.", {"tool_rules": {"deny": ["pay"]}})
    assert pending(context) == []
    assert "[E8]" in outputs(model)["c5"]


async def test_needs_approval_of_the_tool_itself_still_applies(bank: Bank) -> None:
    @function_tool(needs_approval=True)
    def close() -> str:
        """Close the account."""
        return "closed"

    asked = [[function_call("close", {}, call_id="x"), *pays(1)]]
    clerk = Agent("clerk", "Pay.", model=ScriptedModel(asked), tools=[close, *bank.tools])
    assert [call.tool for call in pending(await clerk.run_async("Go."))] == ["close"]
    clerk = Agent(
        "clerk",
        "Pay.",
        model=ScriptedModel(asked),
        tools=[close, *bank.tools],
        middleware=[Approve(lambda call: call.tool == "pay")],
    )
    assert {call.tool for call in pending(await clerk.run_async("Go."))} == {"close", "pay"}
    assert close.needs_approval is True, "the user's tool object is unchanged"


@pytest.mark.parametrize("is_kantan_agent", [True, False])
async def test_calls_of_a_handoff_target_wait_as_well(bank: Bank, is_kantan_agent: bool) -> None:
    model = ScriptedModel([pays(5), [assistant_message("Done.")]])
    target: Any = agent(bank, model)
    if not is_kantan_agent:
        tools: list[Any] = [function_tool(tool) for tool in bank.tools]
        target = SDKAgent(name="clerk", instructions="Pay.", model=model, tools=tools)
    hand_over = ScriptedModel([[function_call("transfer_to_clerk", {}, call_id="h")]])
    desk = Agent("desk", "Ask.", model=hand_over, handoffs=[target], middleware=[Approve("pay")])
    context = await desk.run_async("Go.")
    (call,) = pending(context)
    assert (call.call_id, call.tool, call.values, call.agent) == ("c5", "pay", {"amount": 5}, "clerk")
    context = await resume(desk, to_json(context), {"c5": Approved({"amount": 6})})
    assert bank.paid == [6]
    assert context["result"].final_output == "Done."


async def test_calls_of_an_agent_used_as_a_tool_wait_as_well(bank: Bank) -> None:
    inner_model = ScriptedModel([pays(5), [assistant_message("Paid.")]])
    tools: list[Any] = [function_tool(tool) for tool in bank.tools]
    inner = SDKAgent(name="clerk", instructions="Pay.", model=inner_model, tools=tools)
    tool = inner.as_tool("ask_clerk", "Asks the clerk.")
    model = ScriptedModel(
        [[function_call("ask_clerk", {"input": "Pay."}, call_id="a")], [assistant_message("Done.")]]
    )
    desk = Agent("desk", "Ask.", model=model, tools=[tool], middleware=[Approve("pay")])
    context = await desk.run_async("Go.")
    assert [(call.tool, call.agent) for call in pending(context)] == [("pay", "clerk")]
    assert bank.paid == []
    context = await resume(desk, to_json(context), {"c5": Approved({"amount": 6})})
    assert bank.paid == [6]
    assert context["result"].final_output == "Done."


async def test_a_handler_is_called_while_the_run_goes_on(bank: Bank) -> None:
    asked: list[PendingCall] = []

    async def handler(call: PendingCall) -> Approved | Rejected:
        asked.append(call)
        if call.call_id == "c3":
            return Rejected("No.")
        return Approved({"amount": 20}) if call.call_id == "c2" else Approved()

    model = ScriptedModel(
        [[function_call("balance", {}, call_id="b"), *pays(1, 2, 3)], [assistant_message("Done.")]]
    )
    context = await agent(bank, model, Approve("pay", handler)).run_async("Go.")
    assert {call.call_id for call in asked} == {"c1", "c2", "c3"}
    assert sorted(bank.paid) == [1, 20]
    assert outputs(model) == {"b": "100 left", "c1": "paid 1", "c2": "paid 20", "c3": "No."}
    assert context["result"].final_output == "Done."


async def test_the_rules_take_precedence_over_a_handler(bank: Bank) -> None:
    async def handler(call: PendingCall) -> Approved:
        return Approved({"amount": 10})

    model = ScriptedModel([pays(5), [assistant_message("Done.")]])
    rules = {"params": {"pay": {"amount": {"maximum": 9}}}}
    await agent(bank, model, Approve("pay", handler)).run_async("Go.", {"tool_rules": rules})
    assert bank.paid == []
    assert "[E17]" in outputs(model)["c5"]


def fails(call: PendingCall) -> Any:
    raise LookupError("no such clerk")


async def agrees(call: PendingCall) -> Approved:
    return Approved()


def says_maybe(call: PendingCall) -> Any:
    return "maybe"


@pytest.mark.parametrize(
    ("middleware", "error"),
    [
        (Approve(fails), LookupError),
        (Approve(fails, agrees), LookupError),
        (Approve("pay", fails), LookupError),
        (Approve(says_maybe), MiddlewareResultError),
        (Approve(says_maybe, agrees), MiddlewareResultError),
        (Approve("pay", says_maybe), MiddlewareResultError),
    ],
)
async def test_a_policy_or_handler_that_fails_ends_the_run_and_the_call_is_not_made(
    bank: Bank, middleware: Approve, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await agent(bank, ScriptedModel([pays(5), [assistant_message("?")]]), middleware).run_async("Go.")
    assert bank.paid == []


async def test_one_object_can_be_used_by_concurrent_runs(bank: Bank) -> None:
    import asyncio

    approve = Approve("pay")

    async def one(amount: int) -> None:
        clerk = agent(bank, ScriptedModel([pays(1), [assistant_message("Done.")]]), approve)
        text = to_json(await clerk.run_async("Go."))
        await resume(clerk, text, {"c1": Approved({"amount": amount})})

    await asyncio.gather(*(one(amount) for amount in range(20)))
    assert sorted(bank.paid) == list(range(20))


async def test_a_shell_command_waits_and_cannot_be_edited(bank: Bank) -> None:
    ran: list[str] = []

    def execute(request: Any) -> str:
        ran.extend(request.data.action.commands)
        return "ok"

    call = {"type": "shell_call", "id": "s", "call_id": "s", "status": "completed"}
    from openai.types.responses import ResponseFunctionShellToolCall

    item = ResponseFunctionShellToolCall.model_validate(
        {**call, "action": {"commands": ["ls"], "timeout_ms": None, "max_output_length": None}}
    )
    model = ScriptedModel([[item], [assistant_message("Done.")]])
    clerk = Agent(
        "clerk", "Pay.", model=model, tools=[ShellTool(executor=execute)], middleware=[Approve("shell")]
    )
    context = await clerk.run_async("Go.")
    assert [call.tool for call in pending(context)] == ["shell"]
    text = to_json(context)
    with pytest.raises(ApprovalStateError, match="cannot be edited"):
        await decide(clerk, text, {"s": Approved({"commands": ["rm"]})})
    await resume(clerk, text, {"s": Approved()})
    assert ran == ["ls"]


@pytest.mark.parametrize("policy", [None, 3, [], "", ["pay", 3]])
def test_an_invalid_policy_is_refused(policy: Any) -> None:
    with pytest.raises(InvalidOptionError, match="policy"):
        Approve(policy)


def test_a_handler_that_is_not_callable_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="handler"):
        Approve("pay", "me")  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", ["no json", "[1]", 3, [("a", object())], "NaN"])
def test_edited_arguments_that_are_not_a_json_object_are_refused(arguments: Any) -> None:
    with pytest.raises(InvalidOptionError, match="JSON object"):
        Approved(arguments)


def test_a_reason_that_is_not_a_str_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="reason"):
        Rejected(3)


async def test_errors_say_why_a_run_cannot_be_stored_or_resumed(bank: Bank) -> None:
    clerk = agent(bank, ScriptedModel([pays(1)]), Approve("pay"))
    text = to_json(await clerk.run_async("Go."))
    with pytest.raises(ApprovalStateError, match="waits for no approval"):
        to_json({"result": None})
    with pytest.raises(ApprovalStateError, match="no call 'c9' waits; those that do are: c1"):
        await decide(clerk, text, {"c9": Approved()})
    with pytest.raises(ApprovalStateError, match="not True"):
        await decide(clerk, text, {"c1": True})  # type: ignore[dict-item]
    for broken in ("", "{}", "[]", "null", json.dumps({"$schemaVersion": "1.0"})):
        with pytest.raises(ApprovalStateError, match="not a stored run"):
            await resume(clerk, broken, {}, trust_unsigned=True)
    with pytest.raises(ApprovalStateError, match="not a stored run of agent 'other', but of 'clerk'"):
        await resume(Agent("other", "x", model=ScriptedModel()), text, {"c1": Approved()})


async def test_edited_arguments_without_an_approve_middleware_are_refused(bank: Bank) -> None:
    class Other(Middleware):
        async def tool_call(self, call: Any, call_next: Any) -> Any:
            return await call_next(call)

    text = to_json(await agent(bank, ScriptedModel([pays(1)]), Approve("pay")).run_async("Go."))
    with pytest.raises(ApprovalStateError, match="no Approve"):
        await decide(agent(bank, ScriptedModel(), Other()), text, {"c1": Approved({"amount": 2})})
    assert bank.paid == []


@pytest.mark.parametrize("policy", ["*", ["pay", "web_*"], lambda _call: True])
@pytest.mark.parametrize("handler", [None, approve_all])
async def test_a_hosted_tool_that_needs_approval_ends_the_run(bank: Bank, policy: Any, handler: Any) -> None:
    model = ScriptedModel([[assistant_message("Found.")]])
    tools = [WebSearchTool(), *bank.tools]
    clerk = Agent("clerk", "x", model=model, tools=tools, middleware=[Approve(policy, handler)])
    with pytest.raises(InvalidOptionError, match="no approval can be requested for the tool web_search"):
        await clerk.run_async("Go.")
    assert model.calls == ()


@pytest.mark.parametrize("policy", ["pay", lambda call: call.tool == "pay"])
async def test_a_hosted_tool_that_needs_no_approval_is_allowed(bank: Bank, policy: Any) -> None:
    model = ScriptedModel([[assistant_message("Found.")]])
    tools = [WebSearchTool(), *bank.tools]
    clerk = Agent("clerk", "x", model=model, tools=tools, middleware=[Approve(policy)])
    context = await clerk.run_async("Go.")
    assert context["result"].final_output == "Found."


def local_shell(done: list[str]) -> Any:
    def execute(request: Any) -> str:
        done.append(" ".join(request.data.action.command))
        return "done"

    return LocalShellTool(executor=execute)


def local_shell_call() -> Any:
    action = LocalShellCallAction(command=["rm", "notes"], env={}, type="exec")
    return LocalShellCall(id="s", action=action, call_id="s", status="completed", type="local_shell_call")


async def test_a_tool_the_sdk_cannot_pause_ends_the_run_unless_there_is_a_handler() -> None:
    done: list[str] = []

    async def reject(call: PendingCall) -> Any:
        assert call.tool == "local_shell"
        return Rejected("Not today.")

    def clerk(*arguments: Any) -> Agent:
        model = ScriptedModel([[local_shell_call()], [assistant_message("Done.")]])
        middleware = [Approve("local_*", *arguments)]
        return Agent("clerk", "x", model=model, tools=[local_shell(done)], middleware=middleware)

    with pytest.raises(InvalidOptionError, match="give Approve a handler"):
        await clerk().run_async("Go.")
    assert done == []
    context = await clerk(reject).run_async("Go.")
    assert context["result"].final_output == "Done."
    assert done == []
    await clerk(approve_all).run_async("Go.")
    assert done == ["rm notes"]


@pytest.mark.parametrize("how", ["run_async", "stream"])
@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_over_http_the_model_receives_the_decisions(bank: Bank, api: str, how: str) -> None:
    asked = [ScriptedToolCall("pay", {"amount": amount}, f"c{amount}") for amount in (1, 2, 3)]
    decisions: dict[str, Any] = {
        "c1": Approved(),
        "c2": Approved({"amount": 20}),
        "c3": Rejected("Not on Sundays."),
    }
    with OfflineServer([asked, "Done."]) as server:
        first = Agent(
            "clerk", "Pay.", model=server.bundle(api=api), tools=bank.tools, middleware=[Approve("pay")]
        )
        text = to_json(await run(first, how))
        assert (len(server.requests), bank.paid) == (1, [])
        second = Agent(
            "clerk", "Pay.", model=server.bundle(api=api), tools=bank.tools, middleware=[Approve("pay")]
        )
        context = await run(second, how, await decide(second, text, decisions))
        said = server.requests[1].body
    items = said["input"] if api == "responses" else said["messages"]
    key = "output" if api == "responses" else "content"
    read = {item["call_id" if api == "responses" else "tool_call_id"]: item[key] for item in results(items)}
    assert read == {"c1": "paid 1", "c2": "paid 20", "c3": "Not on Sundays."}
    assert sorted(bank.paid) == [1, 20]
    assert context["result"].final_output == "Done."


def results(items: list[Any]) -> list[Any]:
    return [
        item for item in items if item.get("type") == "function_call_output" or item.get("role") == "tool"
    ]


@pytest.mark.parametrize("forbidden", ["rm", "ls"])
async def test_a_policy_function_receives_each_call_of_a_tool_that_cannot_be_paused(
    forbidden: str,
) -> None:
    done: list[str] = []
    model = ScriptedModel([[local_shell_call()], [assistant_message("Done.")]])
    policy = Approve(lambda call: forbidden in call.arguments)
    clerk = Agent("clerk", "x", model=model, tools=[local_shell(done)], middleware=[policy])
    if forbidden == "rm":
        with pytest.raises(InvalidOptionError, match="give Approve a handler"):
            await clerk.run_async("Go.")
        assert done == []
    else:
        await clerk.run_async("Go.")
        assert done == ["rm notes"]


@pytest.mark.parametrize(
    ("config", "is_refused"),
    [
        ({"require_approval": "never", "allowed_tools": ["delete_file"]}, True),
        ({"require_approval": "never", "allowed_tools": {"tool_names": ["delete_file"]}}, True),
        ({"require_approval": "never", "allowed_tools": ["read_file"]}, False),
        ({"require_approval": "always", "allowed_tools": ["delete_file"]}, False),
    ],
)
async def test_tools_of_a_hosted_mcp_server_are_matched_by_name(
    config: dict[str, Any], is_refused: bool
) -> None:
    tool = HostedMCPTool(
        tool_config={"type": "mcp", "server_label": "files", "server_url": "https://files.test", **config}  # type: ignore[typeddict-item]
    )
    model = ScriptedModel([[assistant_message("Done.")]])

    def delete_order(number: int) -> str:
        """Delete an order."""
        return f"{number} is gone"

    clerk = Agent("clerk", "x", model=model, tools=[tool, delete_order], middleware=[Approve("delete_*")])
    if is_refused:
        with pytest.raises(InvalidOptionError, match="for the tool delete_file"):
            await clerk.run_async("Go.")
        assert model.calls == ()
    else:
        await clerk.run_async("Go.")
        assert len(model.calls) == 1
