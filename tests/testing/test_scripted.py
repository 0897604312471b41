"""The scripted model: the same tests for the SDK's and for this package's."""

from __future__ import annotations

import importlib.util
from typing import Any

import agents
import pytest
from agents import ModelResponse, Usage

import kantan_agents.testing
from kantan_agents import Agent
from kantan_agents.testing import scripted

SDK_HAS_ONE = importlib.util.find_spec("agents.testing") is not None
KINDS = [scripted, kantan_agents.testing]


@pytest.fixture(params=KINDS, ids=lambda module: module.__name__)
def kit(request: Any) -> Any:
    return request.param


def test_the_sdks_scripted_model_is_extended_if_there_is_one() -> None:
    home = kantan_agents.testing.ScriptedModel.__base__.__module__
    assert home == ("agents.testing.model" if SDK_HAS_ONE else "kantan_agents.testing.scripted")


async def test_steps_are_played_in_order_and_calls_recorded(kit: Any) -> None:
    def tool(n: int) -> str:
        """Do it."""
        return f"did {n}"

    model = kit.ScriptedModel(
        [[kit.function_call("tool", {"n": 1}, call_id="c1")], [kit.assistant_message("done")]]
    )
    context = await Agent("a", "Be brief.", model=model, tools=[tool]).run_async("hi")
    assert context["result"].final_output == "done"
    assert len(model.calls) == 2
    assert model.first_call.system_instructions == "Be brief."
    assert [tool.name for tool in model.last_call.tools] == ["tool"]
    assert "did 1" in str(model.last_call.input[-1])
    assert model.last_call.streamed is False
    assert context["result"].context_wrapper.usage.requests == 2
    model.assert_complete()


async def test_an_unexpected_call_and_unplayed_steps_are_errors(kit: Any) -> None:
    model = kit.ScriptedModel()
    with pytest.raises(kit.UnexpectedModelCall) as caught:
        await Agent("a", "b", model=model).run_async("hi")
    assert caught.value.call_index == 0
    model.enqueue([kit.assistant_message("x")])
    model.extend([[kit.assistant_message("y")]])
    assert model.remaining_steps == 2
    with pytest.raises(kit.UnconsumedModelSteps) as left:
        model.assert_complete()
    assert left.value.remaining_steps == 2


async def test_every_kind_of_step(kit: Any) -> None:
    async def later(call: Any) -> Any:
        return [kit.assistant_message(f"asked {call.input[-1]['content']}")]

    usage = Usage(requests=1, input_tokens=2, output_tokens=3, total_tokens=5)
    response = ModelResponse(output=[kit.assistant_message("r")], usage=usage, response_id="id")
    model = kit.ScriptedModel(
        [
            response,
            {"output": [kit.assistant_message("d")]},
            kit.ModelStep(output=[kit.assistant_message("s")]),
            kit.ModelStep.respond(later),
            kit.ModelStep.raise_error(ConnectionError("one")),
            ConnectionError("two"),
        ]
    )
    agent = Agent("a", "b", model=model)
    first = (await agent.run_async("hi"))["result"]
    assert (first.final_output, first.context_wrapper.usage.total_tokens) == ("r", 5)
    texts = [(await agent.run_async("hi"))["result"].final_output for _ in range(3)]
    assert texts == ["d", "s", "asked hi"]
    for message in ("one", "two"):
        with pytest.raises(ConnectionError, match=message):
            await agent.run_async("hi")


async def test_streaming_gives_the_text_in_deltas(kit: Any) -> None:
    model = kit.ScriptedModel([[kit.assistant_message("a long answer")]])
    agent = Agent("a", "b", model=model)
    streamed = agents.Runner.run_streamed(agent.sdk_agent, "hi", context={})
    deltas = [
        event.data.delta
        async for event in streamed.stream_events()
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    ]
    assert "".join(deltas) == streamed.final_output == "a long answer"
    assert model.last_call.streamed is True


async def test_raw_arguments_are_sent_unchanged(kit: Any) -> None:
    assert kit.function_call("t", "{not json", call_id="c").arguments == "{not json"
    assert kit.function_call("t", {"a": "é"}, call_id="c", item_id="i").id == "i"


@pytest.mark.parametrize("wrong", ["text", 3, None])
async def test_a_wrong_step_is_an_error_at_once(wrong: Any) -> None:
    with pytest.raises(scripted.ModelScriptError, match="a step is"):
        scripted.ScriptedModel([wrong])
