"""One part of a request is changed at a time: the replay names it, and ``ignore`` and ``match`` loosen it."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agents
import attrs
import pytest
from agents import (
    FunctionTool,
    ModelSettings,
    WebSearchTool,
    function_tool,
    handoff,
)
from agents.mcp import MCPServer

from kantan_agents import Agent, Middleware, Prompt, Recording, replay, replay_async
from kantan_agents.errors import InvalidOptionError, ReplayDifferenceError, UnknownRecordedToolError
from kantan_agents.testing import OfflineServer
from kantan_agents.testing import ScriptedToolCall as Call
from tests.lab.replay.taping import RAN, Case, Tapes
from tests.tools.mcp.offering import Offering


@attrs.define
class Found:
    n: int


@attrs.define
class Renamed:
    n: int


def _more() -> type[Any]:
    return attrs.make_class("Found", {"n": attrs.field(type=int), "m": attrs.field(type=int, default=1)})


def look(query: str) -> str:
    """Look something up."""
    RAN.append("look")
    return f"found {query}"


def pay(amount: float) -> str:
    """Pay."""
    RAN.append("pay")
    return "paid"


class Changing(Middleware):
    """Changes model calls."""

    def __init__(self, change: Callable[[Any], None]) -> None:
        self.change = change

    async def model_call(self, call: Any, call_next: Any) -> Any:
        self.change(call)
        return await call_next(call)


@attrs.define
class Parts:
    """The parts of the agent; a mutation changes one of them."""

    bundle: Callable[[str], Any]
    model: str = "m"
    instructions: Any = attrs.field(factory=lambda: Prompt("p", "1", "Help {{ $ctx.user.name }}.\nBe kind."))
    tools: list[Any] = attrs.field(
        factory=lambda: [function_tool(look), function_tool(pay), WebSearchTool(search_context_size="low")]
    )
    servers: list[MCPServer] = attrs.field(factory=lambda: [Offering("files", "read")])
    handoffs: list[Any] = attrs.field(factory=lambda: [handoff(agents.Agent("other"))])
    settings: ModelSettings = attrs.field(factory=lambda: ModelSettings(temperature=0.5, extra_body={"a": 1}))
    output_type: Any = Found
    output_mode: Any = "auto"
    middleware: list[Any] = attrs.field(factory=list)
    options: dict[str, Any] = attrs.field(factory=dict)

    def agent(self) -> Agent[Any]:
        return Agent(
            "a",
            self.instructions,
            model=self.bundle(self.model),
            tools=self.tools,
            mcp_servers=self.servers,
            handoffs=self.handoffs,
            model_settings=self.settings,
            output_type=self.output_type,
            output_mode=self.output_mode,
            middleware=self.middleware,
        )


@attrs.frozen
class Recorded:
    recording: Recording
    bundle: Callable[[str], Any]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A run of two model calls; the server of its model is closed."""
    import asyncio

    async def record(tapes: Tapes, parts: Parts) -> Recording:
        given = {"user": {"name": "Aiko"}}
        return (await tapes.record(Case(parts.agent(), "q", given))).recording

    path: Path = tmp_path_factory.mktemp("changed")
    tapes = Tapes(path)
    with OfflineServer([Call("look", {"query": "x"}), '{"n": 1}']) as server:
        bundles = functools.cache(server.bundle)
        bundles("m"), bundles("other-model")
        recording = asyncio.run(record(tapes, Parts(bundles)))
    tapes.recorder.shutdown()
    assert len(recording.root.model_calls) == 2
    return Recorded(recording, bundles)


MUTATIONS: dict[str, tuple[tuple[str, ...], Callable[[Parts], None]]] = {}


def mutation(part: str, name: str = "", *others: str) -> Callable[[Callable[[Parts], None]], Any]:
    """Register a change of one part, with the name that the error has for it, and what changes with it."""

    def add(change: Callable[[Parts], None]) -> Any:
        MUTATIONS[name or part] = ((part, *others), change)
        return change

    return add


@mutation("model")
def _model(parts: Parts) -> None:
    parts.model = "other-model"


@mutation("instructions")
def _instructions(parts: Parts) -> None:
    parts.instructions = Prompt("p", "2", "Help {{ $ctx.user.name }}.\nBe brief.")


@mutation("instructions", "a context value that the recorded prompt had not read")
def _context(parts: Parts) -> None:
    parts.instructions = Prompt("p", "2", "Help {{ $ctx.name }}.\nBe kind.")


def _changed_tool(parts: Parts, **fields: Any) -> None:
    parts.tools[0] = dataclasses.replace(parts.tools[0], **fields)


mutation("tools.look.description")(lambda parts: _changed_tool(parts, description="Look."))
mutation("tools.look.parameters")(
    lambda parts: _changed_tool(
        parts,
        params_json_schema={
            **parts.tools[0].params_json_schema,
            "properties": {"query": {"type": "string", "title": "Other"}},
        },
    )
)
mutation("tools.look.is_strict")(lambda parts: _changed_tool(parts, strict_json_schema=False))
mutation("tools.pay.name")(
    lambda parts: parts.tools.__setitem__(1, dataclasses.replace(parts.tools[1], name="pay_now"))
)
mutation("tools.pay.options.defer_loading")(
    lambda parts: parts.tools.__setitem__(1, dataclasses.replace(parts.tools[1], defer_loading=True))
)
mutation("tools.web_search.options.search_context_size")(
    lambda parts: parts.tools.__setitem__(2, WebSearchTool(search_context_size="high"))
)


@mutation("tools.web_search.kind", "", "tools.web_search.options", "tools.web_search.description")
def _kind(parts: Parts) -> None:
    async def query(context: Any, text: str) -> str:
        return text

    parts.tools[2] = agents.CustomTool(name="web_search", description="Search.", on_invoke_tool=query)


@mutation("tools.read.server", "", "tools.read.name_on_server")
def _server(parts: Parts) -> None:
    parts.servers = []
    schema = {"type": "object", "properties": {"value": {"type": "string"}}}
    parts.tools.insert(0, FunctionTool("read", "", schema, _none, strict_json_schema=False))


async def _none(*arguments: Any) -> None: ...


mutation("tools.pay", "a tool is removed")(lambda parts: parts.tools.__delitem__(1))
mutation("tools.new", "a tool is added")(
    lambda parts: parts.tools.append(function_tool(pay, name_override="new"))
)
mutation("tools.order")(lambda parts: parts.tools.reverse())
mutation("handoffs.transfer_to_other.description")(
    lambda parts: parts.handoffs.__setitem__(
        0, handoff(agents.Agent("other"), tool_description_override="To the other.")
    )
)
mutation("handoffs.transfer_to_other", "a hand-off is removed")(lambda parts: parts.handoffs.clear())
mutation("handoffs.transfer_to_new", "a hand-off is added")(
    lambda parts: parts.handoffs.append(handoff(agents.Agent("new")))
)


@mutation("handoffs.transfer_to_other.parameters")
def _handoff_input(parts: Parts) -> None:
    async def note(context: Any, given: Any) -> None: ...

    parts.handoffs[0] = handoff(agents.Agent("other"), on_handoff=note, input_type=int)


def _set(name: str, value: Any) -> Callable[[Parts], None]:
    return lambda parts: setattr(parts, name, value)


mutation("output", "the output type is removed")(_set("output_type", None))
mutation("output.name", "", "output.schema")(_set("output_type", Renamed))
mutation("output.schema")(lambda parts: setattr(parts, "output_type", _more()))
mutation("output.mode", "", "instructions")(_set("output_mode", "prompt"))
mutation("options.previous_response_id", "", "input")(_set("options", {"previous_response_id": "resp_1"}))


BEFORE = {"role": "user", "content": "before"}


def _listed(given: Any) -> list[Any]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _change_input(call: Any) -> None:
    if len(call.input) > 1:
        call.input = copy.deepcopy(call.input)
        call.input[2]["output"] = "found something else"


mutation("input[2]", "an item of the input")(lambda parts: parts.middleware.append(Changing(_change_input)))
mutation("input[0]", "the input is longer")(
    lambda parts: parts.middleware.append(
        Changing(lambda call: setattr(call, "input", [BEFORE, *_listed(call.input)]))
    )
)
mutation("settings.extra_body.a")(
    lambda parts: setattr(parts, "settings", dataclasses.replace(parts.settings, extra_body={"a": 2}))
)
mutation("settings.temperature", "a setting is removed")(
    lambda parts: setattr(parts, "settings", dataclasses.replace(parts.settings, temperature=None))
)

SETTINGS: dict[str, Any] = {
    "temperature": 0.7,
    "top_p": 0.5,
    "frequency_penalty": 0.5,
    "presence_penalty": 0.5,
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "truncation": "auto",
    "max_tokens": 99,
    "reasoning": {"effort": "low"},
    "verbosity": "low",
    "metadata": {"a": "b"},
    "store": False,
    "prompt_cache_retention": "24h",
    "include_usage": True,
    "response_include": ["message.output_text.logprobs"],
    "top_logprobs": 2,
    "extra_query": {"a": 1},
    "extra_body": {"a": 1, "b": 2},
    "extra_headers": {"a": "1"},
    "extra_args": {"a": 1},
    "context_management": [{"type": "compaction"}],
    "prompt_cache_options": {"mode": "explicit"},
    "preserve_raw_usage": True,
    "timeout": 5.0,
}
IN_IT = {"extra_body": "settings.extra_body.b"}


def _with_setting(parts: Parts, name: str, value: Any) -> None:
    parts.settings = copy.copy(parts.settings)
    setattr(parts.settings, name, value)


KNOWN = {field.name for field in dataclasses.fields(ModelSettings)} - {"retry"}
for _name, _value in SETTINGS.items():
    if _name in KNOWN:
        mutation(IN_IT.get(_name, f"settings.{_name}"), f"the setting {_name}")(
            functools.partial(_with_setting, name=_name, value=_value)
        )


def test_every_setting_of_the_sdk_is_changed_once() -> None:
    assert set(SETTINGS) >= KNOWN


@pytest.mark.parametrize("name", MUTATIONS)
async def test_a_changed_part_is_named_and_can_be_left_out(recorded: Recorded, name: str) -> None:
    changed, change = MUTATIONS[name]
    part = changed[0]
    group = part.split(".", 1)[0].split("[", 1)[0]
    others = {"settings", "instructions", "tools", "handoffs"} - {one.split(".", 1)[0] for one in changed}
    other = min(others)

    async def replayed(**checks: Any) -> Any:
        parts = Parts(recorded.bundle)
        change(parts)
        return await replay_async(recorded.recording, parts.agent(), **checks, **parts.options)

    with pytest.raises(ReplayDifferenceError) as raised:
        await replayed()
    for one in raised.value.differences:
        assert one.part.startswith(changed)
    assert part in [one.part for one in raised.value.differences]
    assert part in str(raised.value)
    assert raised.value.place in ("model call 1 of 'a'", "model call 2 of 'a'")
    with pytest.raises(ReplayDifferenceError):
        await replayed(match=part)
    with pytest.raises(ReplayDifferenceError):
        await replayed(ignore=other)
    # A changed input is changed at every call, at other places.
    exact = ["input"] if group == "input" else changed
    for checks in ({"ignore": [*exact, "answer"]}, {"ignore": [group, *changed, "answer"]}, {"match": other}):
        result = await replayed(**checks)
        assert getattr(result.output, "n", result.output) in (1, '{"n": 1}'), checks


async def test_an_unchanged_agent_replays(recorded: Recorded) -> None:
    assert (await replay_async(recorded.recording, Parts(recorded.bundle).agent())).output == Found(1)


def test_the_difference_is_shown_as_a_diff(recorded: Recorded) -> None:
    parts = Parts(recorded.bundle)
    _instructions(parts)
    with pytest.raises(AssertionError) as raised:
        replay(recorded.recording, parts.agent())
    assert str(raised.value) == (
        "[kantan-agents][E92] The replay differs from the recording at model call 1 of 'a': "
        "instructions changed\n-Be kind.\n+Be brief."
    )


@pytest.mark.parametrize("name", ["instruction", "", "input3", 3, "setting.temperature"])
@pytest.mark.parametrize("option", ["ignore", "match"])
def test_a_part_that_does_not_exist_is_an_error(recorded: Recorded, option: str, name: Any) -> None:
    checks: Any = {option: [name]}
    with pytest.raises(InvalidOptionError, match=r"E75.*is not a part of a run, these are: model, instr"):
        replay(recorded.recording, Parts(recorded.bundle).agent(), **checks)


@pytest.mark.parametrize("option", ["ignore", "match"])
def test_a_misspelt_part_gets_a_hint(recorded: Recorded, option: str) -> None:
    checks: Any = {option: "setings.temperature"}
    with pytest.raises(InvalidOptionError, match="did you mean 'settings'"):
        replay(recorded.recording, Parts(recorded.bundle).agent(), **checks)


@pytest.mark.parametrize("checks", [{"ignore": "tools"}, {"match": "instructions"}], ids=str)
def test_a_tool_that_was_called_cannot_be_left_out(recorded: Recorded, checks: Any) -> None:
    parts = Parts(recorded.bundle)
    del parts.tools[0]
    with pytest.raises(UnknownRecordedToolError, match=r"E96.*'a' has no tool 'look'.*record the run again"):
        replay(recorded.recording, parts.agent(), **checks)


def test_an_additional_model_call_is_named(recorded: Recorded) -> None:
    class Twice(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            await call_next(call.internally(instructions="Summarize."))
            return await call_next(call)

    parts = Parts(recorded.bundle, middleware=[Twice()])
    with pytest.raises(ReplayDifferenceError, match=r"model call 1 of 'a': calls added"):
        replay(recorded.recording, parts.agent())


def test_calls_that_are_left_out_are_named(recorded: Recorded) -> None:
    class Short(Middleware):
        async def tool_call(self, call: Any, call_next: Any) -> Any:
            return "found x"

    parts = Parts(recorded.bundle, middleware=[Short()])
    with pytest.raises(ReplayDifferenceError, match=r"call of the tool 'look' by 'a': calls removed"):
        replay(recorded.recording, parts.agent())
    assert replay(recorded.recording, parts.agent(), ignore="calls").output == Found(1)


def test_rules_that_now_refuse_a_call(recorded: Recorded) -> None:
    agent = Parts(recorded.bundle).agent()
    rules = {"tool_rules": {"deny": ["look(secret)", "look(x)"]}}
    with pytest.raises(ReplayDifferenceError):
        replay(recorded.recording, agent, context=rules)


def test_another_answer_is_named(recorded: Recorded) -> None:
    class More(Middleware):
        async def run(self, run: Any, call_next: Any) -> None:
            await call_next(run)
            run.context["result"].final_output = Found(2)

    parts = Parts(recorded.bundle, middleware=[More()])
    with pytest.raises(ReplayDifferenceError, match=r"at the end: answer changed"):
        replay(recorded.recording, parts.agent())
    assert replay(recorded.recording, parts.agent(), ignore="answer").output == Found(2)


def test_an_error_that_the_recorded_run_did_not_have_is_raised(recorded: Recorded) -> None:
    class Broken(Middleware):
        async def run(self, run: Any, call_next: Any) -> None:
            raise ZeroDivisionError

    parts = Parts(recorded.bundle, middleware=[Broken()])
    with pytest.raises(ZeroDivisionError):
        replay(recorded.recording, parts.agent())
