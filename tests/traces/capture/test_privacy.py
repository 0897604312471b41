"""Whatever is masked, redacted or withheld elsewhere is so in the record of a run, in each of its parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from agents import ModelSettings, RunConfig, SQLiteSession, function_tool

from kantan_agents import Agent, Prompt, redact_texts
from kantan_agents.middleware import Redact
from kantan_agents.testing import OfflineServer, ScriptedModel, ScriptedToolCall, function_call
from kantan_agents.traces.capture import RunRecord
from tests.traces.capture.recording import Recording

SECRET = "sk-proj-0123456789abcdef"
MAIL = "aiko@example.com"
RecordingAt = Callable[..., Recording]


def bytes_of(recording: Recording) -> bytes:
    """Return everything that is in the file."""
    recording.recorder.shutdown()
    path = recording.recorder.path
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


async def everywhere(secret: str, **options: Any) -> None:
    """Run an agent that has ``secret`` in each part of its record."""

    async def look(city: str) -> str:
        """Look."""
        return f"In {city} is {secret}."

    tool = function_tool(look, description_override=f"Look with {secret}.")
    tool.params_json_schema["description"] = f"Parameters of {secret}"
    settings = ModelSettings(
        extra_headers={"Authorization": f"Bearer {secret}", "X-Key": secret},
        extra_body={"token": secret, "n": [secret]},
        extra_args={"user": secret},
        metadata={"key": secret},
    )
    prompt = Prompt("p", "1", f"Use {secret} for {{{{ $ctx.user.key }}}}.", meta={"key": secret})
    calls = [function_call("look", {"city": secret}, call_id="c1"), function_call(secret, {}, call_id="c2")]
    model = ScriptedModel([[*calls], f"It is {secret}."])
    agent = Agent("a", prompt, model=model, tools=[tool], model_settings=settings, **options)
    said: Any = {"role": "user", "content": f"It was {secret}."}
    config = RunConfig(session_input_callback=lambda _earlier, new: new)
    with closing(SQLiteSession("s")) as session:
        await session.add_items([said])
        context = {"user": {"key": secret}}
        await agent.run_async(f"Go with {secret}", context, session=session, run_config=config)


async def failing(secret: str, **options: Any) -> None:
    agent = Agent("a", "x", model=ScriptedModel([LookupError(f"bad {secret}")]), **options)
    with pytest.raises(LookupError):
        await agent.run_async("Go")


async def test_secrets_are_masked_in_each_part(recording: Recording) -> None:
    await everywhere(SECRET)
    await failing(SECRET)
    runs = [run for trace in recording.traces() for run in trace.runs]
    assert [run.outcome for run in runs] == ["finished", "failed"]
    assert all(run.missing == () for run in runs)
    call = runs[0].model_calls[0]
    assert call.request.settings["extra_headers"]["Authorization"] != f"Bearer {SECRET}"  # type: ignore[call-overload]
    assert call.request.instructions is not None
    assert call.request.instructions.startswith("Use ")
    assert b"0123456789abcdef" not in bytes_of(recording)


async def test_a_redact_function_sees_each_part(recording_at: RecordingAt) -> None:
    hidden = "Hidden Words 42"
    recording = recording_at(redact=redact_texts(lambda text: text.replace(hidden, "[gone]")))
    await everywhere(hidden)
    await failing(hidden)
    runs = [run for trace in recording.traces() for run in trace.runs]
    first = runs[0]
    assert first.input == "Go with [gone]"
    assert first.earlier is not None
    assert first.earlier[0]["content"] == "It was [gone]."
    assert first.output == "It is [gone]."
    assert first.agents[0].context == {"user.key": "[gone]"}
    assert first.agents[0].prompt is not None
    assert first.agents[0].prompt.text == "Use [gone] for {{ $ctx.user.key }}."
    assert first.model_calls[0].request.instructions == "Use [gone] for [gone]."
    assert first.model_calls[0].request.settings["metadata"] == {"key": "[gone]"}
    assert first.model_calls[0].request.tools[0].description == "Look with [gone]."
    assert json.loads(first.tool_calls[0].arguments) == {"city": "[gone]"}
    assert first.tool_calls[0].output == "In [gone] is [gone]."
    assert all(run.missing == () for run in runs)
    assert hidden.encode() not in bytes_of(recording)


async def test_what_a_redact_function_withholds_is_named_as_missing(recording_at: RecordingAt) -> None:
    recording = recording_at(redact=lambda _span: None)
    await everywhere("Hidden Words 42")
    trace = recording.trace()
    (run,) = trace.runs
    assert not trace.is_complete
    assert run.missing == ("parts were left out by the redact function",)
    assert run.model_calls[0].request.instructions is None
    assert run.agents[0].prompt is None
    assert b"Hidden Words" not in bytes_of(recording)


@pytest.mark.parametrize("kind", ["response", "generation", "function", "custom"])
async def test_a_redact_function_that_knows_one_kind_of_span_withholds_only_that(
    recording_at: RecordingAt, kind: str
) -> None:
    def redact(span: dict[str, Any]) -> dict[str, Any] | None:
        return None if (span.get("span_data") or {}).get("type") == kind else span

    recording = recording_at(redact=redact)
    await everywhere("Words")
    (run,) = recording.trace().runs
    call, tool_call = run.model_calls[0], run.tool_calls[0]
    kept = {
        "response": call.request.instructions is not None,
        "generation": run.input is not None,
        "function": bool(tool_call.arguments),
        "custom": bool(call.request.tools),
    }
    assert {name for name, is_kept in kept.items() if not is_kept} == {kind}
    assert run.missing == ("parts were left out by the redact function",)


async def test_a_redact_function_that_raises_costs_the_record_and_nothing_leaks(
    recording_at: RecordingAt,
) -> None:
    def redact(_span: dict[str, Any]) -> dict[str, Any]:
        raise LookupError("no rules")

    recording = recording_at(redact=redact)
    await everywhere("Hidden Words 42")
    trace = recording.trace()
    assert trace.runs == ()
    assert not trace.is_complete
    assert b"Hidden Words" not in bytes_of(recording)


@pytest.mark.parametrize("change", [lambda _text: "x", str.upper, lambda text: text[::-1]])
async def test_a_redact_function_that_changes_the_names_of_fields_leaves_nothing_of_them(
    recording_at: RecordingAt, change: Callable[[str], str]
) -> None:
    recording = recording_at(redact=redact_texts(change))
    await everywhere("Hidden Words 42")
    trace = recording.trace()
    assert not trace.is_complete
    assert [run.input for run in trace.runs] == [None]
    assert b"Hidden Words" not in bytes_of(recording)


@pytest.mark.parametrize("answer", [{}, {"span_data": {}}, {"span_data": {"type": "x"}}, {"span_data": None}])
async def test_a_redact_function_that_returns_little_leaves_a_record_that_can_be_read(
    recording_at: RecordingAt, answer: dict[str, Any]
) -> None:
    recording = recording_at(redact=lambda _span: dict(answer))
    await everywhere("Hidden Words 42")
    for run in recording.trace().runs:
        assert run.missing != ()
        assert run.model_calls[0].request.instructions is None
    assert b"Hidden Words" not in bytes_of(recording)


def in_texts(run: RunRecord) -> str:
    return repr(run)


@pytest.mark.parametrize("restore", [False, True])
async def test_the_redact_middleware_applies_to_the_record(recording: Recording, restore: bool) -> None:
    received = []

    async def mail(to: str) -> str:
        """Send."""
        received.append(to)
        return f"sent to {to}"

    replies = [ScriptedToolCall("mail", {"to": "[email_1]" if restore else MAIL}), f"Mailed {MAIL}."]
    with OfflineServer(replies) as server:
        agent = Agent(
            "a", "x", model=server.bundle(), tools=[mail], middleware=[Redact("email", restore=restore)]
        )
        await agent.run_async(f"Write to {MAIL}")
    run = recording.run()
    assert MAIL not in in_texts(run)
    assert [*run.model_calls[0].request.input] == server.requests[0].input
    assert received == [MAIL if restore else "[email]"]
    assert "[email" in run.tool_calls[0].arguments
    assert MAIL.encode() not in bytes_of(recording)


async def test_a_run_without_sensitive_data_stores_nothing(recording: Recording) -> None:
    config = RunConfig(trace_include_sensitive_data=False)
    await Agent("a", "Hidden words.", model=ScriptedModel(["Hi."])).run_async("Go", run_config=config)
    trace = recording.trace()
    assert trace.runs == ()
    assert len(trace.missing) == 1
    assert b"Hidden words" not in bytes_of(recording)


async def test_a_run_inside_one_without_sensitive_data_stores_nothing(recording: Recording) -> None:
    inner = Agent("inner", "Hidden words.", model=ScriptedModel(["Hi."]))

    async def ask() -> str:
        """Ask."""
        return str((await inner.run_async("Go"))["result"].final_output)

    model = ScriptedModel([[function_call("ask", {}, call_id="1")], "Done."])
    config = RunConfig(trace_include_sensitive_data=False)
    await Agent("outer", "x", model=model, tools=[ask]).run_async("Go", run_config=config)
    inner_runs = [run for run in recording.trace().runs if run.agent == "inner"]
    outer_runs = [run for run in recording.trace().runs if run.agent == "outer"]
    assert outer_runs == []
    # As for its spans, the setting is that of each run.
    assert len(inner_runs) <= 1


async def test_a_limited_length_applies_to_the_record_and_is_named(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KANTAN_LLM_TRACING_MAX_CHARS", "50")
    await Agent("a", "x" * 200, model=ScriptedModel(["y" * 200])).run_async("z" * 200)
    (run,) = recording.trace().runs
    assert run.missing == ("long texts were truncated: KANTAN_LLM_TRACING_MAX_CHARS is set",)
    assert run.model_calls[0].request.instructions is not None
    assert len(run.model_calls[0].request.instructions) < 100
    assert b"x" * 100 not in bytes_of(recording)
    assert b"z" * 100 not in bytes_of(recording)
