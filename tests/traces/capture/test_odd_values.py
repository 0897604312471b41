"""Values that JSON or SQLite do not have cost neither the run nor the rest of its record."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import attrs
import pytest
from agents import Model, ModelResponse, ModelSettings, Usage, function_tool
from pydantic import BaseModel, SecretStr

from kantan_agents import Agent, Prompt
from kantan_agents.agent.bridge.captured.definitions import encode
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.traces.capture.canonical import canonical, content_hash, decode
from tests.traces.capture.recording import Recording


class Bad:
    """An object with which nothing can be done."""

    def __str__(self) -> str:
        raise LookupError("no text")

    __repr__ = __str__

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__attrs_attrs__", "__dataclass_fields__"):
            return super().__getattribute__(name)
        raise ValueError(name)


class Lists(BaseModel):
    values: list[float]
    key: SecretStr = SecretStr("hidden")


@dataclasses.dataclass
class Point:
    x: Any


@attrs.define
class Place:
    x: Any


def cycle() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["self"] = made
    return made


def deep() -> list[Any]:
    made: list[Any] = []
    for _ in range(5_000):
        made = [made]
    return made


ODD: dict[str, Any] = {
    "half a surrogate": "a\ud800b",
    "NaN": math.nan,
    "infinity": -math.inf,
    "a huge number": 10**400,
    "a number of 65 bits": 2**64,
    "a cycle": cycle(),
    "deep": deep(),
    "odd keys": {1: 2, (1, 2): 3, None: 4, "\ud800": 5},
    "a set": {1, 2},
    "bytes": b"\xff\x00",
    "an object": object(),
    "a bad object": Bad(),
    "a class": Bad,
    "a function": len,
    "a model": Lists(values=[math.nan, 1.0]),
    "a data class": Point(Point(math.nan)),
    "an attrs class": Place({1}),
    "zero bytes": "a\x00b",
}
odd = pytest.mark.parametrize("value", ODD.values(), ids=ODD.keys())


@odd
def test_any_value_is_encoded_as_json_that_can_be_read(value: Any) -> None:
    read = decode(encode({"value": value, "other": "é"}))
    assert read["other"] == "é"
    assert decode(canonical(read)) == read
    assert len(content_hash(read)) == 64


@odd
async def test_an_odd_value_in_the_context_costs_nothing_else(recording: Recording, value: Any) -> None:
    model = ScriptedModel([[function_call("look", {}, call_id="1")], "Done."])

    async def look() -> str:
        """Look."""
        return "ok"

    # Rendering it would fail.
    agent = Agent("a", "For {{ $ctx.name }}.", model=model, tools=[look], renderer=lambda *_: "Fixed.")
    await agent.run_async("Go", {"name": value})
    run = recording.run()
    assert run.output == "Done."
    assert set(run.agents[0].context) == {"name"}
    assert len(run.model_calls) == 2


class Hi(Model):
    """It answers "Hi.", and copies nothing, unlike the SDK's scripted model: a setting can be anything."""

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        return ModelResponse([assistant_message("Hi.")], Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@odd
async def test_an_odd_setting_costs_nothing_else(recording: Recording, value: Any) -> None:
    settings = ModelSettings(temperature=0.5, extra_args={"odd": value})
    await Agent("a", "x", model=Hi(), model_settings=settings).run_async("Go")
    (run,) = recording.trace().runs
    assert run.output == "Hi."
    (call,) = run.model_calls
    assert call.request.instructions == "x"
    assert call.answer is not None
    assert run.missing != () or call.request.settings["temperature"] == 0.5


@pytest.mark.parametrize("name", sorted(ODD.keys() - {"a bad object", "deep"}))
async def test_an_odd_tool_costs_nothing_else(recording: Recording, name: str) -> None:
    value = ODD[name]  # without the two of which the SDK can make no text

    @function_tool
    async def look() -> Any:
        """Look."""
        return value

    if name != "a cycle":  # the SDK accepts no such schema
        look.params_json_schema["odd"] = value
    model = ScriptedModel([[function_call("look", {}, call_id="1")], "Done."])
    await Agent("a", "x", model=model, tools=[look]).run_async("Go")
    (run,) = recording.trace().runs
    assert run.output == "Done."
    assert [tool.name for tool in run.model_calls[0].request.tools] == ["look"]
    assert [call.tool.name for call in run.tool_calls] == ["look"]


@odd
async def test_an_odd_meta_value_of_a_prompt_costs_nothing_else(recording: Recording, value: Any) -> None:
    prompt = Prompt("p", "1", "x", meta={"tags": [value]})
    await Agent("a", prompt, model=ScriptedModel(["Hi."])).run_async("Go")
    (run,) = recording.trace().runs
    assert run.model_calls[0].answer is not None
    assert run.agents == () or run.agents[0].name == "a"


async def test_texts_with_half_surrogates_and_zero_bytes_are_recorded(recording: Recording) -> None:
    text = "a\ud800b\x00c"
    model = ScriptedModel([[assistant_message(text)]])
    await Agent("a", f"Say {text}.", model=model).run_async(f"Go {text}")
    run = recording.run()
    assert run.input == f"Go {text}"
    assert run.output == "a\ufffdb\x00c"  # models/whole_text.py
    assert run.model_calls[0].request.instructions == f"Say {text}."


async def test_an_error_without_a_text_costs_nothing_else(recording: Recording) -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise LookupError("no text")

    with pytest.raises(OddError):
        await Agent("a", "x", model=ScriptedModel([OddError()])).run_async("Go")
    (run,) = recording.trace().runs
    assert run.outcome == "failed"
    assert run.error is None or run.error.type == "OddError"
