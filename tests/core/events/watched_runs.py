"""Scripts of runs drawn by Hypothesis: the calls of the models, the tools, and the code around them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import agents
import attrs
from agents import FunctionTool, Model, ModelResponse, Usage, function_tool
from hypothesis import strategies as st
from openai.types.responses import ResponseTextDeltaEvent

from kantan_agents import Agent, Middleware
from kantan_agents.agent.bridge.model_answers import completed_event
from kantan_agents.testing import assistant_message, function_call

RULES = {"deny": ["hidden"], "params": {"ok": {"value": {"maxLength": 3}}}}

CALLS = (
    "ok",
    "refused",
    "fails",
    "breaks",
    "times_out",
    "hidden",
    "unknown",
    "nested",
    "nested_failing",
    "as_tool",
    "as_tool_of_the_sdk",
)
MIDDLEWARE = (
    "passes",
    "asks_twice",
    "asks_inside",
    "answers",
    "calls_twice",
    "computes",
    "replaces",
    "raises",
)


class Playing(Model):
    """A model that plays scripted turns; it finds the next one from the conversation.

    Args:
        name: Name of the agent, with which the call ids begin.
        turns: The names of the calls in each turn. After the last turn the model answers with a text.
        hands_to: Name of the agent to hand off to after the last turn.
        words: The number of words in the answer.
    """

    def __init__(
        self, name: str, turns: list[list[str]], hands_to: str | None = None, words: int = 3
    ) -> None:
        self.name = name
        self.turns = turns
        self.hands_to = hands_to
        self.words = words
        self.deltas = 0
        self.is_open = 0
        self._count = itertools.count()

    def _answer(self, conversation: Any) -> list[Any]:
        items = conversation if isinstance(conversation, list) else []
        mine = [str(item.get("call_id")) for item in items if item.get("type") == "function_call"]
        played = {call_id.split(".")[1] for call_id in mine if call_id.startswith(f"{self.name}.")}
        turn = len(played)
        if turn < len(self.turns):
            return [self._call(turn, kind) for kind in self.turns[turn]]
        if self.hands_to is not None and turn == len(self.turns):
            return [function_call(f"transfer_to_{self.hands_to}", {}, call_id=self._id(turn))]
        return [assistant_message(" ".join(f"{self.name}{word}" for word in range(self.words)))]

    def _call(self, turn: int, kind: str) -> Any:
        name, arguments = kind, {}
        if kind == "refused":
            name, arguments = "ok", {"value": "too long"}
        elif kind.startswith("as_tool"):
            arguments = {"input": "go"}
        elif kind in ("ok", "fails", "breaks", "times_out", "hidden"):
            arguments = {"value": "a"}
        return function_call(name, arguments, call_id=self._id(turn))

    def _id(self, turn: int) -> str:
        return f"{self.name}.{turn}.{next(self._count)}"

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        await asyncio.sleep(0)
        usage = Usage(requests=1, input_tokens=2, output_tokens=1, total_tokens=3)
        return ModelResponse(output=self._answer(input), usage=usage, response_id=None)

    async def stream_response(
        self, system_instructions: Any, input: Any, *_: Any, **__: Any
    ) -> AsyncIterator[Any]:
        self.is_open += 1
        try:
            answer = await self.get_response(system_instructions, input)
            for item in answer.output:
                for part in getattr(item, "content", None) or ():
                    for piece in part.text.split(" "):
                        self.deltas += 1
                        yield delta(piece)
            yield completed_event(answer)
        finally:
            self.is_open -= 1


def delta(text: str) -> ResponseTextDeltaEvent:
    return ResponseTextDeltaEvent(
        type="response.output_text.delta",
        item_id="i",
        output_index=0,
        content_index=0,
        delta=text,
        logprobs=[],
        sequence_number=0,
    )


@attrs.frozen
class Script:
    """The script of one run."""

    turns: list[list[str]]
    middleware: list[str]
    inner_turns: list[list[str]]
    hands_over: bool
    output_dest: bool

    @property
    def may_differ_in_order(self) -> bool:
        """Whether the end depends on which of two tools is the first to fail."""
        return any(len(turn) > 1 for turn in self.turns)


simple = st.sampled_from(["ok", "fails", "refused", "unknown"])
scripts = st.builds(
    Script,
    turns=st.lists(st.lists(st.sampled_from(CALLS), min_size=1, max_size=3), max_size=2),
    middleware=st.lists(st.sampled_from(MIDDLEWARE), max_size=2),
    inner_turns=st.lists(st.lists(simple, min_size=1, max_size=2), max_size=1),
    hands_over=st.booleans(),
    output_dest=st.booleans(),
)


def tools(inner: Agent, failing: Agent) -> list[FunctionTool]:
    async def ok(value: str) -> str:
        await asyncio.sleep(0)
        return f"did {value}"

    async def fails(value: str) -> str:
        raise LookupError(value)

    async def breaks(value: str) -> str:
        raise LookupError(value)

    async def times_out(value: str) -> str:
        await asyncio.Event().wait()
        return value

    async def hidden(value: str) -> str:
        raise AssertionError

    async def nested() -> str:
        return str((await inner.run_async("inside"))["result"].final_output)

    async def nested_failing() -> str:
        return str(await failing.run_async("inside"))

    plain = [function_tool(made) for made in (ok, fails, hidden, nested, nested_failing)]
    slow = function_tool(times_out, timeout=0.001)
    return [*plain, slow, function_tool(breaks, failure_error_function=None)]


def _middleware(kind: str) -> Middleware:
    made = {
        "passes": Middleware,
        "asks_twice": AsksTwice,
        "asks_inside": AsksInside,
        "answers": Answers,
        "calls_twice": CallsTwice,
        "computes": Computes,
        "replaces": Replaces,
        "raises": Raises,
    }[kind]
    return Passes() if made is Middleware else made()


class Passes(Middleware):
    async def model_call(self, call: Any, call_next: Any) -> Any:
        return await call_next(call)

    async def tool_call(self, call: Any, call_next: Any) -> Any:
        return await call_next(call)


class AsksTwice(Middleware):
    async def model_call(self, call: Any, call_next: Any) -> Any:
        await call_next(call)
        return await call_next(call)


class AsksInside(Middleware):
    async def model_call(self, call: Any, call_next: Any) -> Any:
        await call_next(call.internally(instructions="Sum up."))
        return await call_next(call)


class Answers(Middleware):
    async def model_call(self, call: Any, call_next: Any) -> Any:
        return ModelResponse(output=[assistant_message("by itself")], usage=Usage(), response_id=None)


class CallsTwice(Middleware):
    async def tool_call(self, call: Any, call_next: Any) -> Any:
        await call_next(call)
        return await call_next(call)


class Computes(Middleware):
    async def tool_call(self, call: Any, call_next: Any) -> Any:
        return "computed"


class Replaces(Middleware):
    async def tool_call(self, call: Any, call_next: Any) -> Any:
        call.arguments = call.arguments.replace("too long", "a")
        return await call_next(call)


class Raises(Middleware):
    async def tool_call(self, call: Any, call_next: Any) -> Any:
        await call_next(call)
        raise KeyError("by a middleware")


def built(script: Script, **options: Any) -> Agent:
    """Return a new agent that plays a script."""
    inner = Agent("inner", "x", model=Playing("inner", script.inner_turns), tools=_leaf_tools())
    failing = Agent("failing", "x", model=Breaking())
    of_the_sdk: Any = agents.Agent(name="sdk", model=Playing("sdk", script.inner_turns), tools=_leaf_tools())
    target = Agent("target", "x", model=Playing("target", [["ok"]]), tools=_leaf_tools())
    given: list[Any] = [
        *tools(inner, failing),
        inner.sdk_agent.as_tool("as_tool", "d"),
        of_the_sdk.as_tool("as_tool_of_the_sdk", "d"),
    ]
    entry = Playing("entry", script.turns, "target" if script.hands_over else None)
    return Agent(
        "entry",
        "x",
        model=entry,
        tools=given,
        handoffs=[target],
        middleware=[(f"{kind}{place}", _middleware(kind)) for place, kind in enumerate(script.middleware)],
        **options,
    )


def _leaf_tools() -> list[Any]:
    async def ok(value: str) -> str:
        return f"inner did {value}"

    async def fails(value: str) -> str:
        raise LookupError(value)

    return [function_tool(ok), function_tool(fails)]


class Breaking(Model):
    """A model that cannot be reached."""

    async def get_response(self, *_: Any, **__: Any) -> Any:
        raise ConnectionError("out of reach")

    async def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise ConnectionError("out of reach")
        yield None
