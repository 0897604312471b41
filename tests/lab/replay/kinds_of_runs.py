"""One function for each kind of run; ``live`` is whether its models can answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import agents
import attrs
import httpx
import openai
from agents import ModelSettings, RunContextWrapper
from agents.memory import SessionABC

from kantan_agents import (
    Agent,
    AgentDefinition,
    Middleware,
    Prompt,
    SlashCommands,
    ToolRetrieval,
    judge_agent,
    task_tool,
)
from kantan_agents.middleware import Approve, Approved, Redact, Rejected, Retry
from kantan_agents.testing import ScriptedModel
from kantan_agents.testing import ScriptedToolCall as Call
from tests.lab.replay.taping import RAN, Case

KINDS: dict[str, Callable[[bool], Case]] = {}


def kind(function: Callable[[bool], Case]) -> Callable[[bool], Case]:
    KINDS[function.__name__] = function
    return function


def scripted(live: bool, *steps: Any) -> ScriptedModel:
    return ScriptedModel(list(steps) if live else [])


def tool(name: str) -> Callable[..., str]:
    def call(x: str = "1") -> str:
        """Do it."""
        RAN.append(name)
        return f"{name}:{x}"

    call.__name__ = name
    return call


def failing(x: str) -> str:
    """Fail."""
    RAN.append("failing")
    raise RuntimeError(f"broken {x}")


@attrs.define
class Out:
    n: int
    s: str


class Catch(Middleware):
    async def tool_call(self, call: Any, call_next: Any) -> Any:
        try:
            return await call_next(call)
        except RuntimeError as error:
            return f"caught {error}"


OUT = '{"n": 1, "s": "x"}'


@kind
def plain(live: bool) -> Case:
    return Case(Agent("a", "Hi", model=scripted(live, "Yes")))


@kind
def template(live: bool) -> Case:
    agent = Agent("a", Prompt("p", "2", "Hi {{ $ctx.user.name }}"), model=scripted(live, "Yes"))
    return Case(agent, context={"user": {"name": "Aiko", "secret": 1}, "other": 2})


@kind
def tools(live: bool) -> Case:
    model = scripted(live, Call("t1", {"x": "q"}), Call("t2", {}), "Yes")
    settings = ModelSettings(temperature=0.5, extra_args={"a": 1})
    return Case(Agent("a", "Hi", model=model, tools=[tool("t1"), tool("t2")], model_settings=settings))


@kind
def failing_tool(live: bool) -> Case:
    return Case(Agent("a", "Hi", model=scripted(live, Call("failing", {"x": "q"}), "Yes"), tools=[failing]))


@kind
def failing_tool_caught(live: bool) -> Case:
    model = scripted(live, Call("failing", {"x": "q"}), "Yes")
    return Case(Agent("a", "Hi", model=model, tools=[failing], middleware=[Catch()]))


@kind
def wrong_arguments(live: bool) -> Case:
    model = scripted(live, Call("failing", {"y": 1}), Call("failing", "{"), "Yes")
    return Case(Agent("a", "Hi", model=model, tools=[failing]))


@kind
def unknown_tool(live: bool) -> Case:
    model = scripted(live, Call("nothing", {"y": 1}), "Yes")
    return Case(Agent("a", "Hi", model=model, tools=[tool("t1")]))


@kind
def structured_native(live: bool) -> Case:
    return Case(Agent("a", "Hi", model=scripted(live, OUT), output_type=Out, output_dest="o"))


@kind
def structured_repaired(live: bool) -> Case:
    model = scripted(live, '{"n": "zz"}', OUT)
    return Case(Agent("a", "Hi", model=model, output_type=Out, output_dest="o"))


@kind
def structured_never(live: bool) -> Case:
    return Case(Agent("a", "Hi", model=scripted(live, *["no"] * 6), output_type=Out))


@kind
def structured_prompt(live: bool) -> Case:
    return Case(Agent("a", "Hi", model=scripted(live, OUT), output_type=Out, output_mode="prompt"))


@kind
def structured_prompt_repaired(live: bool) -> Case:
    model = scripted(live, "none", OUT)
    return Case(Agent("a", "Hi", model=model, output_type=Out, output_mode="prompt"))


@kind
def structured_tool(live: bool) -> Case:
    model = scripted(live, Call("final_answer", {"n": 1, "s": "x"}), OUT)
    return Case(Agent("a", "Hi", model=model, output_type=Out, output_mode="tool"))


@kind
def structured_tool_repaired(live: bool) -> Case:
    model = scripted(live, Call("final_answer", {"n": "z"}), Call("final_answer", {"n": 1, "s": "x"}), OUT)
    return Case(Agent("a", "Hi", model=model, output_type=Out, output_mode="tool"))


@kind
def handoff(live: bool) -> Case:
    other = Agent("b", "I am b", model=scripted(live, Call("tb", {}), "from b"), tools=[tool("tb")])
    model = scripted(live, Call("transfer_to_b", {}))
    return Case(Agent("a", "Hi", model=model, handoffs=[other]))


@kind
def handoff_to_sdk_agent(live: bool) -> Case:
    function = agents.function_tool(tool("tb"))
    other = agents.Agent[Any](
        "b", instructions="I am b", model=scripted(live, Call("tb", {}), "from b"), tools=[function]
    )
    return Case(Agent("a", "Hi", model=scripted(live, Call("transfer_to_b", {})), handoffs=[other]))


@kind
def agent_as_tool(live: bool) -> Case:
    inner = Agent("b", "I am b", model=scripted(live, Call("tb", {"x": "z"}), "from b"), tools=[tool("tb")])
    return Case(Agent("a", "Hi", model=scripted(live, Call("b", {"input": "x"}), "done"), tools=[inner]))


HELPER = "---\nname: helper\ndescription: helps\ntools: tb\n---\nYou help {{ $ctx.user }}."


@kind
def delegation(live: bool) -> Case:
    arguments = {"description": "d", "prompt": "p", "subagent_type": "helper"}
    model = scripted(live, Call("Task", arguments), Call("tb", {"x": "1"}), "child", "parent")
    helper = AgentDefinition.loads(HELPER)
    agent = Agent("a", "Hi", model=model, tools=[tool("tb"), task_tool([helper])])
    return Case(agent, context={"user": "Aiko"})


@kind
def delegations_at_once(live: bool) -> Case:
    calls = [
        Call("Task", {"description": "d", "prompt": text, "subagent_type": "helper"}) for text in ("p", "q")
    ]
    model = scripted(live, calls, "child", "child", "parent")
    helper = AgentDefinition.loads(HELPER)
    return Case(Agent("a", "Hi", model=model, tools=[tool("tb"), task_tool([helper])]), context={"user": "x"})


@kind
def refused(live: bool) -> Case:
    model = scripted(live, Call("rm", {"x": "q"}), "Yes")
    agent = Agent("a", "Hi", model=model, tools=[tool("rm"), tool("ls")])
    return Case(agent, context={"tool_rules": {"deny": ["rm"]}})


@kind
def refused_arguments(live: bool) -> Case:
    model = scripted(live, Call("rm", {"x": "long"}), Call("rm", {"x": "s"}), "Yes")
    rules = {"params": {"rm": {"x": {"maxLength": 1}}}}
    return Case(Agent("a", "Hi", model=model, tools=[tool("rm")]), context={"tool_rules": rules})


@kind
def parallel(live: bool) -> Case:
    calls = [Call("t1", {"x": "q"}), Call("t2", {"x": "r"}), Call("t1", {"x": "s"})]
    return Case(Agent("a", "Hi", model=scripted(live, calls, "Yes"), tools=[tool("t1"), tool("t2")]))


@kind
def context_changed_by_tool(live: bool) -> Case:
    def rename(context: RunContextWrapper[dict[str, Any]]) -> str:
        """Rename the user."""
        RAN.append("rename")
        context.context["user"] = {"name": "New"}
        return "ok"

    prompt = Prompt("p", "1", "Hi {{ $ctx.user.name }}")
    agent = Agent("a", prompt, model=scripted(live, Call("rename", {}), "Yes"), tools=[rename])
    return Case(agent, context={"user": {"name": "Old"}})


@kind
def model_fails(live: bool) -> Case:
    return Case(Agent("a", "Hi", model=scripted(live, RuntimeError("down"))))


class OddError(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"odd {one} {two}")


@kind
def model_fails_oddly(live: bool) -> Case:
    return Case(Agent("a", "Hi", model=scripted(live, OddError(1, 2))))


@kind
def retried(live: bool) -> Case:
    response = httpx.Response(429, request=httpx.Request("POST", "http://x/"))
    slow = openai.RateLimitError("slow", response=response, body=None)
    model = scripted(live, slow, "Yes")
    return Case(Agent("a", "Hi", model=model, middleware=[Retry(2, initial_delay=0.01)]))


class Items(SessionABC):
    session_id = "s"
    session_settings = None

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return self.items

    async def add_items(self, items: list[Any]) -> None:
        self.items += items

    async def pop_item(self) -> Any:
        return self.items.pop()

    async def clear_session(self) -> None:
        self.items.clear()


@kind
def session(live: bool) -> Case:
    said = [{"role": "user", "content": "old"}, {"role": "assistant", "content": "older"}]
    model = scripted(live, Call("t1", {}), "Yes")
    return Case(Agent("a", "Hi", model=model, tools=[tool("t1")]), options={"session": Items(said)})


@kind
def redacted(live: bool) -> Case:
    model = scripted(live, Call("t1", {"x": "me@example.com"}), "ok me@example.com")
    agent = Agent("a", "Hi", model=model, tools=[tool("t1")], middleware=[Redact()])
    return Case(agent, "mail me@example.com")


@dataclasses.dataclass
class Point:
    x: int


@kind
def kinds_of_results(live: bool) -> Case:
    def point() -> Point:
        """Return a data class."""
        RAN.append("point")
        return Point(1)

    def mapping() -> dict[str, Any]:
        """Return a dict."""
        RAN.append("mapping")
        return {"a": (1, 2.5), "b": None}

    def nothing() -> None:
        """Return nothing."""
        RAN.append("nothing")

    def number() -> float:
        """Return a number."""
        RAN.append("number")
        return 1.0

    def picture() -> agents.ToolOutputImage:
        """Return a picture."""
        RAN.append("picture")
        return agents.ToolOutputImage(image_url="data:image/png;base64,AA==")

    def texts() -> list[Any]:
        """Return several parts."""
        RAN.append("texts")
        return [agents.ToolOutputText(text="one"), agents.ToolOutputText(text="two")]

    made = [point, mapping, nothing, number, picture, texts]
    model = scripted(live, [Call(one.__name__, {}) for one in made], "ok")
    return Case(Agent("a", "Hi", model=model, tools=made))


@kind
def retrieval(live: bool) -> Case:
    model = scripted(live, Call("find_tools", {"query": "t7"}), Call("t7", {"x": "1"}), "ok")
    many = [tool(f"t{number}") for number in range(30)]
    return Case(Agent("a", "Hi", model=model, tools=many, tool_retrieval=ToolRetrieval(3)), "use t1")


@kind
def items_as_input(live: bool) -> Case:
    said = [("user", "a"), ("assistant", "b"), ("user", "c")]
    items = [{"role": role, "content": text} for role, text in said]
    return Case(Agent("a", "Hi", model=scripted(live, "ok")), items)


@kind
def max_turns(live: bool) -> Case:
    model = scripted(live, Call("t1", {}), Call("t1", {}))
    return Case(Agent("a", "Hi", model=model, tools=[tool("t1")]), options={"max_turns": 2})


@kind
def stop_on_first_tool(live: bool) -> Case:
    model = scripted(live, Call("t1", {}))
    return Case(Agent("a", "Hi", model=model, tools=[tool("t1")], tool_use_behavior="stop_on_first_tool"))


@kind
def asked_person(live: bool) -> Case:
    async def decide(call: Any) -> Any:
        RAN.append("person asked")
        return Rejected("no") if "2" in call.arguments else Approved()

    model = scripted(live, Call("pay", {"x": "1"}), Call("pay", {"x": "2"}), "done")
    return Case(Agent("a", "Hi", model=model, tools=[tool("pay")], middleware=[Approve("pay", decide)]))


@kind
def slash_command(live: bool) -> Case:
    commands = SlashCommands({"allow": ["t1"]})
    agent = Agent("a", "Hi", model=scripted(live), tools=[tool("t1")], middleware=[commands])
    return Case(agent, "/t1 --x hello")


@kind
def no_slash_command(live: bool) -> Case:
    commands = SlashCommands({"allow": ["t1"]})
    agent = Agent("a", "Hi", model=scripted(live, "ok"), tools=[tool("t1")], middleware=[commands])
    return Case(agent, "hello")


@kind
def judged(live: bool) -> Case:
    model = scripted(live, '{"score": 0.5, "comments": ["a"]}')
    return Case(judge_agent(Prompt("j", "1", "Judge it"), model=model), "text")
