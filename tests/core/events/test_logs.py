"""Log lines of a run: none by default, one per run at info, and one per event at debug."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from kantan_agents import Agent
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.core.events.watched_runs import Playing


@pytest.fixture(autouse=True)
def _no_names() -> Iterator[None]:
    structlog.contextvars.clear_contextvars()
    yield
    structlog.contextvars.clear_contextvars()


def calling(tool: Any, model_says: str = "done", **options: Any) -> Agent:
    script: list[Any] = [[function_call("tool", {}, call_id="c")], [assistant_message(model_says)]]
    return Agent("outer", "x", model=ScriptedModel(script), tools=[tool], **options)


async def test_silent_by_default(capfd: Any, caplog: Any) -> None:
    agent = Agent("a", "x", model=Playing("a", []))
    await agent.run_async("hi")
    with pytest.raises(LookupError):
        await Agent("a", "x", model=ScriptedModel([LookupError("gone")])).run_async("hi")
    assert capfd.readouterr() == ("", "")
    assert [record for record in caplog.records if record.levelno < logging.WARNING] == []


async def test_one_line_per_run_at_info(caplog: Any) -> None:
    agent = Agent("a", "x", model=Playing("a", []))
    with caplog.at_level("INFO", logger="kantan_agents"):
        context = await agent.run_async("hi")
    (record,) = caplog.records
    assert (record.message, record.levelname, record.name) == ("run finished", "INFO", "kantan_agents.run")
    assert record.agent_name == "a"
    assert len(record.agent_run_id) == 32
    assert (record.requests, record.total_tokens) == (1, 3)
    assert record.seconds >= 0
    assert context["result"].final_output == "a0 a1 a2"


async def test_a_failed_run_is_a_warning_with_its_error(caplog: Any) -> None:
    agent = Agent("a", "x", model=ScriptedModel([LookupError("gone")]))
    with caplog.at_level("INFO", logger="kantan_agents"), pytest.raises(LookupError) as caught:
        await agent.run_async("hi")
    (record,) = caplog.records
    assert (record.message, record.levelname, record.error_type) == ("run failed", "WARNING", "LookupError")
    assert record.agent_run_id == caught.value.kantan_run.id  # type: ignore[attr-defined]


async def test_a_cancelled_run_is_not_a_warning(caplog: Any) -> None:
    async def tool() -> str:
        task.cancel()
        await asyncio.Event().wait()
        return ""

    with caplog.at_level("INFO", logger="kantan_agents"):
        task = asyncio.create_task(calling(tool).run_async("hi"))
        await asyncio.wait([task])
    assert [(record.message, record.levelname) for record in caplog.records] == [("run cancelled", "INFO")]


async def test_each_event_at_debug(caplog: Any) -> None:
    agent = Agent("a", "x", model=Playing("a", []))
    with caplog.at_level("DEBUG", logger="kantan_agents"):
        await agent.run_async("hi")
    *events, line = [record for record in caplog.records if record.name == "kantan_agents.run"]
    assert (events[0].message, events[-1].message, line.message) == (
        "run_started",
        "run_finished",
        "run finished",
    )
    assert [record.sequence for record in events] == list(range(1, len(events) + 1))
    assert {record.levelname for record in events} == {"DEBUG"}
    assert {(record.run_id, record.agent) for record in events} == {(line.agent_run_id, "a")}


async def test_events_with_a_message_are_logged_too(caplog: Any) -> None:
    agent = Agent("a", "x", model=ScriptedModel([LookupError("gone")]))
    with caplog.at_level("DEBUG", logger="kantan_agents"), pytest.raises(LookupError):
        await agent.run_async("hi")
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    (failed,) = [record for record in caplog.records if record.message == "run_failed"]
    assert (failed.message_, failed.error_type) == ("gone", "LookupError")


async def test_names_bound_by_the_user_do_not_break_a_run(caplog: Any) -> None:
    structlog.contextvars.bind_contextvars(name="me", message="mine", module="m", args=(1,), process="p")
    agent = Agent("a", "x", model=Playing("a", []))

    def fails(event: Any) -> None:
        raise LookupError

    with caplog.at_level("DEBUG", logger="kantan_agents"), agent.subscribe(fails):
        await agent.run_async("hi")
    (line,) = [record for record in caplog.records if record.message == "run finished"]
    assert (line.name_, line.message_, line.process_) == ("me", "mine", "p")


@pytest.mark.parametrize("way", ["run_async", "stream", "sync"])
async def test_the_users_log_lines_inside_a_tool_carry_the_names(way: str) -> None:
    lines: list[dict[str, Any]] = []

    def keep(_: Any, __: str, event: Any) -> Any:
        lines.append(dict(event))
        raise structlog.DropEvent

    log = structlog.wrap_logger(None, processors=[structlog.contextvars.merge_contextvars, keep])
    inner = Agent(
        "inner", "x", model=Playing("inner", []), middleware=[logging_stage(log, "in the inner run")]
    )

    async def tool() -> str:
        log.info("before")
        context = await inner.run_async("inside")
        log.info("after")
        return str(context["result"].final_output)

    agent = calling(tool, middleware=[logging_stage(log, "in a stage")])
    structlog.contextvars.bind_contextvars(request="r1")
    if way == "run_async":
        await agent.run_async("hi")
    elif way == "stream":
        async with agent.stream("hi") as run:
            async for _ in run:
                continue
    else:
        await asyncio.to_thread(agent.run, "hi")
    log.info("outside")
    named = [(line["event"], line.get("agent_name"), line["request"]) for line in lines]
    assert named == [
        ("in a stage", "outer", "r1"),
        ("before", "outer", "r1"),
        ("in the inner run", "inner", "r1"),
        ("after", "outer", "r1"),
        ("outside", None, "r1"),
    ]
    assert "agent_run_id" not in lines[-1]
    assert lines[0]["agent_run_id"] == lines[1]["agent_run_id"] == lines[3]["agent_run_id"]
    assert lines[2]["agent_run_id"] != lines[0]["agent_run_id"]


def logging_stage(log: Any, text: str) -> Any:
    async def say(run: Any, call_next: Any) -> None:
        log.info(text)
        await call_next(run)

    return say


async def test_the_names_are_gone_after_a_run_that_fails() -> None:
    with pytest.raises(LookupError):
        await Agent("a", "x", model=ScriptedModel([LookupError("gone")])).run_async("hi")
    assert structlog.contextvars.get_contextvars() == {}


def test_the_names_are_gone_after_a_sync_run() -> None:
    Agent("a", "x", model=Playing("a", [])).run("hi")
    assert structlog.contextvars.get_contextvars() == {}
