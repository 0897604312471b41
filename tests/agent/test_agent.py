"""The Agent scenarios of the specification, through the real SDK runner."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

import agents
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from kantan_agents import DEFAULT_STAGES, Agent, Pipeline, Prompt
from kantan_agents.errors import (
    ContextTypeError,
    HistoryTypeError,
    InputTypeError,
    InstructionsRequiredError,
    InvalidOptionError,
    InvalidToolRulesError,
    RendererResultError,
    RenderError,
    ToolNameRequiredError,
    ToolRulesTypeError,
)
from kantan_agents.testing import ScriptedModel, assistant_message, function_call


class Summary(BaseModel):
    title: str
    score: int


def model_answering(*texts: Any) -> Any:
    return ScriptedModel([[assistant_message(text)] for text in texts])


def model_echoing_the_input() -> Any:
    from kantan_agents.testing import ModelStep

    def answer(call: Any) -> Any:
        return [assistant_message(call.input[-1]["content"])]

    return ScriptedModel([ModelStep.respond(answer) for _ in range(100)])


async def test_spec_2_5_and_2_7_the_callers_dict_is_completed_and_returned() -> None:
    context = {"user": {"name": "Bo"}}
    model = model_answering("Paris")
    returned = await Agent("geo", "Hi {{ $ctx.user.name }}", model=model).run_async("Capital?", context)
    assert returned is context
    assert isinstance(context["result"], agents.RunResult)
    assert context["result"].final_output == "Paris"
    assert context["tool_rules"] == {"allow": None, "deny": None, "params": {}}
    assert model.last_call.system_instructions == "Hi Bo"


@pytest.mark.parametrize("empty", [None, {}])
async def test_spec_2_6_an_empty_context_is_completed(empty: Any) -> None:
    context = await Agent("a", "b", model=model_answering("x")).run_async("hi", empty)
    assert set(context) == {"tool_rules", "result", "history"}
    assert empty is None or context is empty


def test_spec_2_9_run_and_run_async_return_the_same() -> None:
    context = Agent("a", "b", model=model_answering("x")).run("hi", {"k": 1})
    assert (context["k"], context["result"].final_output) == (1, "x")


@pytest.mark.parametrize("make", [lambda: Agent("a"), lambda: Agent("a", None)])
async def test_spec_7_1_no_instructions_is_e1(make: Any) -> None:
    with pytest.raises(InstructionsRequiredError):
        make()


async def test_spec_2_2_options_reach_the_sdk_agent() -> None:
    agent = Agent(
        "a",
        Prompt("p", "v1", "text"),
        model=model_answering("x"),
        model_settings=agents.ModelSettings(temperature=0.5),
        output_type=Summary,
        handoff_description="does things",
        tool_use_behavior="stop_on_first_tool",
    )
    sdk = agent.sdk_agent
    assert (sdk.name, sdk.handoff_description) == ("a", "does things")
    assert sdk.tool_use_behavior == "stop_on_first_tool"
    assert sdk.model_settings == agents.ModelSettings(temperature=0.5)
    assert sdk.output_type.output_type is Summary
    assert repr(agent).startswith("Agent('a', model=") and "prompt=p@v1" in repr(agent)


async def test_an_option_the_sdk_does_not_know_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="hooky"):
        Agent("a", "b", hooky=1)


@given(limit=st.integers(1, 7), inputs=st.lists(st.text(min_size=1), min_size=1, max_size=6))
def test_spec_10_the_history_keeps_the_newest_pairs_in_order(limit: Any, inputs: Any) -> None:
    agent = Agent("a", "b", model=model_echoing_the_input(), history=limit)
    context: dict = {}
    for text in inputs:
        context = agent.run(text, context)
    expected = [{"role": role, "text": text} for text in inputs for role in ("user", "assistant")]
    assert context["history"] == expected[-limit:]


async def test_spec_10_3_with_history_0_the_history_is_not_touched() -> None:
    agent = Agent("a", "b", model=model_answering("x", "y"), history=0)
    assert "history" not in await agent.run_async("hi")
    assert (await agent.run_async("hi", {"history": "mine"}))["history"] == "mine"


async def test_the_history_and_other_keys_of_the_context_are_not_sent_to_the_model() -> None:
    model = model_answering("Paris")
    history = [{"role": "user", "text": "earlier"}]
    await Agent("geo", "Help.", model=model).run_async("Capital?", {"history": history, "note": "private"})
    assert model.last_call.input == "Capital?" or [item["content"] for item in model.last_call.input] == [
        "Capital?"
    ]
    assert model.last_call.system_instructions == "Help."


async def test_the_callers_history_list_is_extended_in_place() -> None:
    history = [{"role": "user", "text": "before"}]
    context = await Agent("a", "b", model=model_answering("x")).run_async("hi", {"history": history})
    assert context["history"] is history
    assert [entry["text"] for entry in history] == ["before", "hi", "x"]


@pytest.mark.parametrize(
    ("input_items", "text"),
    [
        ([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], "b"),
        (
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "x"},
                        {"type": "input_image", "image_url": "data:,"},
                        {"type": "input_text", "text": "y"},
                    ],
                }
            ],
            "x\ny",
        ),
        ([{"role": "assistant", "content": "only me"}], ""),
    ],
)
async def test_the_last_user_text_of_a_list_of_input_items_is_stored(input_items: Any, text: Any) -> None:
    context = await Agent("a", "b", model=model_answering("ok")).run_async(input_items)
    assert context["history"][0] == {"role": "user", "text": text}


async def test_spec_11_1_a_structured_output_is_stored_in_the_context_as_a_dict() -> None:
    agent = Agent(
        "a", "b", model=model_answering('{"title": "T", "score": 3}'), output_type=Summary, output_dest="out"
    )
    context = await agent.run_async("hi", {"out": "old"})
    assert context["out"] == {"title": "T", "score": 3}
    assert context["result"].final_output == Summary(title="T", score=3)
    assert context["history"][-1]["text"] == '{"title": "T", "score": 3}'


async def test_a_text_is_not_stored_under_output_dest() -> None:
    context = await Agent("a", "b", model=model_answering("text"), output_dest="out").run_async("hi")
    assert "out" not in context


async def test_spec_8_1_a_tool_may_change_the_instructions_of_the_next_turn() -> None:
    def look_up(ctx: agents.RunContextWrapper[dict]) -> str:
        """Find the customer."""
        ctx.context["customer"] = "Aya"
        return "found"

    model = ScriptedModel([[function_call("look_up", {}, call_id="c1")], [assistant_message("done")]])
    await Agent("a", "Customer: {{ $ctx.customer }}", model=model, tools=[look_up]).run_async("hi")
    assert [call.system_instructions for call in model.calls] == ["Customer: ", "Customer: Aya"]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("arguments", [2, 3])
async def test_a_sync_or_async_renderer_is_called_once_per_turn(is_async: Any, arguments: Any) -> None:
    calls = []

    def two(text: Any, context: Any) -> Any:
        calls.append((text, context["k"]))
        return "rendered"

    def three(text: Any, context: Any, allow_env: Any) -> Any:
        assert allow_env is True
        return two(text, context)

    plain = two if arguments == 2 else three

    async def wrapped(*args: Any) -> Any:
        return plain(*args)

    async def async_two(text: Any, context: Any) -> Any:
        return plain(text, context)

    async def async_three(text: Any, context: Any, allow_env: Any) -> Any:
        return plain(text, context, allow_env)

    renderer = (async_two if arguments == 2 else async_three) if is_async else plain
    model = model_answering("x")
    agent = Agent("a", Prompt("p", "v", "text"), model=model, renderer=renderer, allow_env=True)
    await agent.run_async("hi", {"k": 1})
    assert calls == [("text", 1)]
    assert model.last_call.system_instructions == "rendered"


async def test_env_is_rendered_only_when_allowed(monkeypatch: Any) -> None:
    monkeypatch.setenv("PLACE", "Kyoto")
    model = model_answering("x", "y")
    await Agent("a", "[{{ $env.PLACE }}]", model=model).run_async("hi")
    await Agent("a", "[{{ $env.PLACE }}]", model=model, allow_env=True).run_async("hi")
    assert [call.system_instructions for call in model.calls] == ["[]", "[Kyoto]"]


async def test_runner_options_reach_the_runner() -> None:
    seen = {}

    class Runner:
        @staticmethod
        async def run(agent: Any, input: Any, **options: Any) -> Any:
            seen.update(options, agent=agent, input=input)
            return "answer"

    hooks = agents.RunHooks()
    agent = Agent("a", "b", runner=Runner)
    context = await agent.run_async("hi", max_turns=3, hooks=hooks, previous_response_id="r1")
    assert context["result"] == "answer"
    assert (seen["max_turns"], seen["hooks"], seen["previous_response_id"]) == (3, hooks, "r1")
    assert seen["agent"] is agent.sdk_agent and seen["context"] is context


async def test_a_session_works_as_in_the_sdk(tmp_path: Any) -> None:
    session = agents.SQLiteSession("s", str(tmp_path / "s.db"))
    model = model_answering("one", "two")
    agent = Agent("a", "b", model=model)
    await agent.run_async("first", session=session)
    await agent.run_async("second", session=session)
    assert [i.get("content") for i in model.last_call.input if i["role"] == "user"] == [
        "first",
        "second",
    ]
    session.close()


# Middleware


async def test_middleware_is_outermost_in_list_order() -> None:
    log = []

    async def outer(run: Any, call_next: Any) -> None:
        log.append("outer in")
        await call_next(run)
        log.append(("outer out", run.context["history"][-1]["text"]))

    async def inner(run: Any, call_next: Any) -> None:
        log.append("inner in")
        await call_next(run)

    agent = Agent("a", "b", model=model_answering("x"), middleware=[outer, inner])
    assert agent.pipeline.names[:3] == ("outer", "inner", "normalize_context")
    await agent.run_async("hi")
    assert log == ["outer in", "inner in", ("outer out", "x")]


async def test_a_result_set_before_call_sdk_is_used_and_no_model_is_called() -> None:
    class Cached:
        final_output = "cached"

    async def cache(run: Any, call_next: Any) -> None:
        run.result = Cached()
        await call_next(run)

    model = model_answering()
    context = await Agent("a", "b", model=model, middleware=[cache]).run_async("hi")
    assert isinstance(context["result"], Cached)
    assert context["history"] == [
        {"role": "user", "text": "hi"},
        {"role": "assistant", "text": "cached"},
    ]
    assert model.calls == ()


async def test_a_stage_that_does_not_call_next_leaves_no_stale_result() -> None:
    async def veto(run: Any, call_next: Any) -> None:
        pass

    agent = Agent("a", "b", model=model_answering(), middleware=[veto])
    assert await agent.run_async("hi", {"result": "of the run before"}) == {"result": None}


async def ends_the_run(run: Any, call_next: Any) -> None:
    run.result = run.result or "from the stage"


@pytest.mark.parametrize(
    ("before", "completed", "answered"),
    [("normalize_context", False, False), ("call_sdk", True, False), ("store_output", True, True)],
)
async def test_what_the_context_holds_after_an_early_end_depends_on_the_stages_that_ran(
    before: str, completed: bool, answered: bool
) -> None:
    pipeline = Pipeline(DEFAULT_STAGES).before(before, ends_the_run)
    reply = Summary(title="t", score=1).model_dump_json()
    agent = Agent(
        "a", "b", model=model_answering(reply), output_type=Summary, output_dest="summary", pipeline=pipeline
    )
    context = await agent.run_async("hi", {"result": "of the run before", "summary": {"title": "earlier"}})
    assert ("tool_rules" in context, "history" in context) == (completed, completed)
    assert context.get("history", []) == []
    assert context["summary"] == {"title": "earlier"}
    if answered:
        assert context["result"].final_output == Summary(title="t", score=1)
    else:
        assert context["result"] == "from the stage"


async def test_a_stage_may_replace_the_instructions_for_the_whole_run() -> None:
    async def be_brief(run: Any, call_next: Any) -> None:
        run.instructions += " Be brief."
        await call_next(run)

    def tool() -> str:
        """Do it."""
        return "done"

    model = ScriptedModel([[function_call("tool", {}, call_id="c1")], [assistant_message("x")]])
    pipeline = Pipeline(DEFAULT_STAGES).before("call_sdk", be_brief)
    await Agent("a", "You are {{ $ctx.who }}.", model=model, tools=[tool], pipeline=pipeline).run_async(
        "hi", {"who": "A"}
    )
    assert [c.system_instructions for c in model.calls] == ["You are A. Be brief."] * 2


async def test_without_the_render_stage_instructions_are_still_rendered() -> None:
    model = model_answering("x")
    pipeline = Pipeline(DEFAULT_STAGES).without("render_instructions")
    await Agent("a", "Hi {{ $ctx.n }}", model=model, pipeline=pipeline).run_async("hi", {"n": 1})
    assert model.last_call.system_instructions == "Hi 1"


# A failed run leaves the context unchanged

STAGES = [stage.__name__ for stage in DEFAULT_STAGES]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_failing_stage_leaves_the_context_unchanged(stage: Any, when: Any) -> None:
    async def fail(run: Any, call_next: Any) -> None:
        if when == "after":
            await call_next(run)
        raise LookupError("mine")

    agent = Agent(
        "a",
        "b",
        model=model_answering('{"title": "T", "score": 3}'),
        output_type=Summary,
        output_dest="out",
        history=3,
        pipeline=Pipeline(DEFAULT_STAGES).before(stage, fail),
    )
    context = {
        "out": {"old": 1},
        "result": "old",
        "history": [{"role": "user", "text": str(n)} for n in range(5)],
        "tool_rules": {"allow": "*"},
        "mine": [1],
    }
    expected = copy.deepcopy(context)
    with pytest.raises(LookupError, match="mine") as caught:
        await agent.run_async("hi", context)
    assert context == expected
    assert caught.value.kantan_run.input == "hi"
    assert caught.value.kantan_run.metadata["agent_name"] == "a"


async def test_after_a_failure_only_the_defaults_are_new() -> None:
    context = {"k": 1}
    with pytest.raises(ConnectionError):
        await Agent("a", "b", model=ScriptedModel([ConnectionError("gone")])).run_async("hi", context)
    assert context == {
        "k": 1,
        "tool_rules": {"allow": None, "deny": None, "params": {}},
        "result": None,
        "history": [],
    }


# Bad input


@pytest.mark.parametrize(
    ("context", "error"),
    [
        ([], ContextTypeError),
        ("x", ContextTypeError),
        ({"history": "x"}, HistoryTypeError),
        ({"history": None}, HistoryTypeError),
        ({"tool_rules": []}, ToolRulesTypeError),
        ({"tool_rules": {"alow": []}}, InvalidToolRulesError),
    ],
)
async def test_a_wrong_context_is_refused_before_any_model_call(context: Any, error: Any) -> None:
    before = copy.deepcopy(context)
    model = model_answering()
    with pytest.raises(error):
        await Agent("a", "b", model=model).run_async("hi", context)
    if error is not InvalidToolRulesError:
        assert context == before
    assert model.calls == ()


@pytest.mark.parametrize("wrong", [None, 1, {"role": "user"}, b"x"])
async def test_a_wrong_input_is_e78(wrong: Any) -> None:
    with pytest.raises(InputTypeError) as caught:
        await Agent("a", "b", model=model_answering()).run_async(wrong)
    assert caught.value.got == type(wrong).__name__


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"instructions": 3}, "instructions"),
        ({"instructions": lambda c, a: "x"}, "instructions"),
        ({"history": -1}, "history"),
        ({"history": "5"}, "history"),
        ({"history": True}, "history"),
        ({"metadata": "x"}, "metadata"),
        ({"renderer": "x"}, "renderer"),
        ({"renderer": lambda text: text}, "renderer"),
        ({"model": 3}, "model"),
    ],
)
async def test_an_invalid_option_is_e75_and_named(options: Any, option: Any) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        Agent("a", **{"instructions": "b", **options})
    assert (caught.value.code, caught.value.option) == ("E75", option)


async def test_invalid_handoffs_and_run_config_are_e75() -> None:
    with pytest.raises(InvalidOptionError, match="handoffs"):
        await Agent("a", "b", model=model_answering(), handoffs=["billing"]).run_async("hi")
    with pytest.raises(InvalidOptionError, match="run_config"):
        await Agent("a", "b", model=model_answering()).run_async("hi", run_config=3)


@pytest.mark.parametrize("tool", [3, "x", object(), lambda: "x"])
async def test_a_tool_without_a_name_is_e4(tool: Any) -> None:
    with pytest.raises(ToolNameRequiredError) as caught:
        Agent("a", "b", tools=[tool])
    assert caught.value.tool is tool


async def test_an_error_of_a_renderer_propagates_unchanged() -> None:
    def broken(text: Any, context: Any) -> None:
        raise KeyError("mine")

    model = model_answering()
    with pytest.raises(KeyError, match="mine"):
        await Agent("a", "b", model=model, renderer=broken).run_async("hi")
    with pytest.raises(RendererResultError, match="not NoneType"):
        await Agent("a", "b", model=model, renderer=lambda t, c: None).run_async("hi")
    assert model.calls == ()


async def test_a_value_without_text_is_e77() -> None:
    class Broken:
        def __str__(self) -> None:
            raise RuntimeError("no")

    context = {"v": Broken()}
    with pytest.raises(RenderError):
        await Agent("a", "{{ $ctx.v }}", model=model_answering()).run_async("hi", context)
    assert context["history"] == []


# Metadata


async def test_spec_4_metadata_of_a_prompt() -> None:
    agent = Agent("a", Prompt("p", "v2", "text", meta={"tone": "warm", "list": [1], "n": 2, "b": True}))
    metadata = agent.trace_metadata({}, "run1")
    assert metadata == {
        "agent_name": "a",
        "prompt_name": "p",
        "prompt_version": "v2",
        "prompt_id": hashlib.sha256(b"text").hexdigest(),
        "prompt_meta_tone": "warm",
        "prompt_meta_n": 2,
        "prompt_meta_b": True,
        "agent_run_id": "run1",
    }


async def test_custom_metadata_never_overrides_a_standard_key() -> None:
    mine = {"agent_name": "evil", "agent_run_id": "evil", "team": "x", 3: "three"}
    for metadata in (mine, lambda context: {**mine, "team": context["team"]}):
        agent = Agent("a", "text", metadata=metadata)
        merged = agent.trace_metadata({"team": "x"}, "run1")
        assert merged["agent_name"] == "a"
        assert merged["agent_run_id"] == "run1"
        assert (merged["team"], merged["3"]) == ("x", "three")


async def test_metadata_given_as_a_mapping_is_not_shared_with_the_caller() -> None:
    mine = {"team": "x"}
    agent = Agent("a", "text", metadata=mine)
    mine["team"] = "y"
    assert agent.trace_metadata({}, "r")["team"] == "x"


async def test_a_retrying_stage_finds_the_context_unchanged() -> None:
    tries = []

    async def fails_once(run: Any, call_next: Any) -> None:
        await call_next(run)
        tries.append(len(run.context["history"]))
        if len(tries) == 1:
            raise ConnectionError

    async def retry(run: Any, call_next: Any) -> None:
        try:
            await call_next(run)
        except ConnectionError:
            await call_next(run)

    agent = Agent("a", "b", model=model_answering("x", "y"), middleware=[retry, fails_once])
    context = await agent.run_async("hi")
    assert tries == [2, 2]
    assert [entry["text"] for entry in context["history"]] == ["hi", "y"]
    assert context["result"].final_output == "y"


async def test_a_stage_may_repeat_the_run_until_it_accepts_the_answer() -> None:
    async def insist(run: Any, call_next: Any) -> None:
        await call_next(run)
        while run.result.final_output != "good":
            await call_next(run)

    agent = Agent("a", "b", model=model_answering("bad", "worse", "good"), middleware=[insist])
    context = await agent.run_async("hi")
    assert [entry["text"] for entry in context["history"]] == ["hi", "good"]


async def test_the_run_that_a_stage_passes_on_is_sent_to_the_model() -> None:
    import attrs

    async def swap(run: Any, call_next: Any) -> None:
        await call_next(attrs.evolve(run, instructions="replaced", input="other"))

    model = model_answering("x")
    pipeline = Pipeline(DEFAULT_STAGES).before("call_sdk", swap)
    context = await Agent("a", "orig", model=model, pipeline=pipeline).run_async("hi")
    assert model.last_call.system_instructions == "replaced"
    assert [entry["text"] for entry in context["history"]] == ["other", "x"]


async def test_a_wrapper_around_a_standard_stage_runs_code_after_it() -> None:
    import functools

    from kantan_agents.agent.stages import render_instructions

    log = []

    @functools.wraps(render_instructions)
    async def timed(run: Any, call_next: Any) -> None:
        await render_instructions(run, call_next)
        log.append(run.result.final_output)

    pipeline = Pipeline(DEFAULT_STAGES).replace("render_instructions", timed)
    await Agent("a", "b", model=model_answering("x"), pipeline=pipeline).run_async("hi")
    assert log == ["x"]


@pytest.mark.parametrize("wrong", ["history", "result", "tool_rules", 5])
async def test_an_output_dest_that_is_reserved_or_not_a_str_is_e75(wrong: Any) -> None:
    with pytest.raises(InvalidOptionError, match="output_dest"):
        Agent("a", "b", output_dest=wrong)


async def test_a_list_instead_of_a_dict_is_e75() -> None:
    with pytest.raises(InvalidOptionError, match="metadata"):
        await Agent("a", "b", model=model_answering(), metadata=lambda context: [1]).run_async("hi")
    with pytest.raises(InvalidOptionError, match=r"Prompt\.meta"):
        Prompt("p", "v", "t", meta=[1])


async def test_a_history_that_a_tool_replaced_by_none_is_e6() -> None:
    def wreck(ctx: agents.RunContextWrapper[Any]) -> str:
        """Break it."""
        ctx.context["history"] = None
        return "done"

    model = ScriptedModel([[function_call("wreck", {}, call_id="c")], [assistant_message("x")]])
    with pytest.raises(HistoryTypeError):
        await Agent("a", "b", model=model, tools=[wreck]).run_async("hi")


async def test_an_exception_with_its_run_can_be_pickled() -> None:
    import pickle

    with pytest.raises(ConnectionError) as caught:
        await Agent("a", "b", model=ScriptedModel([ConnectionError("gone")])).run_async("hi")
    copied = pickle.loads(pickle.dumps(caught.value))
    original = caught.value.kantan_run
    assert (copied.kantan_run.id, copied.kantan_run.input) == (original.id, "hi")
    assert copied.kantan_run.metadata == original.metadata


@pytest.mark.parametrize("option", ["tools", "handoffs", "mcp_servers"])
@pytest.mark.parametrize("value", [5, len, "text", {"a": 1}])
def test_a_value_that_is_not_a_list_is_an_error_that_names_the_option(option: Any, value: Any) -> None:
    with pytest.raises(InvalidOptionError, match=rf"\[E75\] Invalid option {option}: must be a list, not "):
        Agent("a", "x", **{option: value})


async def test_an_unknown_field_of_a_run_config_is_named() -> None:
    with pytest.raises(InvalidOptionError, match="run_config: RunConfig has no field foo"):
        await Agent("a", "x").run_async("hi", run_config={"foo": 1})
