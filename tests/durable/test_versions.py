"""Another version of the program, or of the library, goes on with a run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent
from kantan_agents.durable import DurableOutcome, DurableRun, DurableRuns
from kantan_agents.durable.engines.engine import Job, resumed_queue
from kantan_agents.durable.step_bodies import dump, load, message_of
from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.testing import OfflineServer
from tests.durable import version_1
from tests.durable.revival import LOOK_INTERVAL, Case, call, opened, results, revive

_REPLIES = {0: [call("look", "c1")], 1: [call("pay", "c2", amount=3)], 2: "Done."}


def _tools(case: Case) -> list[Any]:
    async def look() -> str:
        """Look."""
        case.effect("look")
        return "saw"

    async def pay(amount: int) -> str:
        """Pay."""
        case.effect(f"pay {amount}")
        case.die()
        return f"paid {amount}"

    return [look, pay]


def _more(case: Case) -> Any:
    async def count() -> int:
        """Count."""
        return 1

    return case.agent(tools=_tools(case) if case.is_first else [count, *reversed(_tools(case))])


def _plain(case: Case) -> Agent[Any]:
    return case.agent(tools=_tools(case))


def _other_output(case: Case) -> Agent[Any]:
    return case.agent(tools=_tools(case), output_type=None if case.is_first else dict)


CASES = {
    "prompt": Case(
        lambda case: case.agent(
            tools=_tools(case), instructions="Help." if case.is_first else "Help better."
        ),
        _REPLIES,
    ),
    "more": Case(_more, _REPLIES),
    "less": Case(
        lambda case: case.agent(tools=_tools(case) if case.is_first else _tools(case)[:1]), _REPLIES
    ),
    "less_finished": Case(
        lambda case: case.agent(tools=_tools(case) if case.is_first else _tools(case)[1:]), _REPLIES
    ),
    "model": Case(
        lambda case: case.agent(
            tools=_tools(case), model=case.server.bundle("gpt-first" if case.is_first else "gpt-second")
        ),
        _REPLIES,
    ),
    "newer_run": Case(_plain, _REPLIES),
    "newer_step": Case(_plain, _REPLIES),
    "damaged_step": Case(_plain, _REPLIES),
    "damaged_run": Case(_plain, _REPLIES),
    "renamed": Case(_plain, _REPLIES),
}


def _change(database: str) -> None:
    with opened(database) as connection:
        ids = {
            json.loads(json.loads(inputs)["positionalArgs"][0])["agent"]: run_id
            for run_id, inputs in connection.execute("SELECT workflow_uuid, inputs FROM workflow_input")
        }
        for name, old, new in (
            ("newer_run", '\\"v\\":1', '\\"v\\":2'),
            ("damaged_run", '\\"v\\":1', '\\"v\\":'),
            ("renamed", '\\"renamed\\"', '\\"unknown\\"'),
        ):
            connection.execute(
                "UPDATE workflow_input SET inputs = replace(inputs, ?, ?) WHERE workflow_uuid = ?",
                (old, new, ids[name]),
            )
        connection.execute(
            "UPDATE kantan_agents_durable_steps SET step = replace(step, 'model/renamed/', 'model/unknown/')"
        )
        for name, old, new in (("newer_step", '"v":1', '"v":2'), ("damaged_step", '"v":1', '"v":')):
            connection.execute(
                "UPDATE kantan_agents_durable_steps SET body = replace(body, ?, ?) WHERE root_id = ?",
                (old, new, ids[name]),
            )


@pytest.fixture(scope="module", autouse=True)
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return revive(tmp_path_factory.mktemp("versions"), CASES, between=_change)


@pytest.mark.parametrize("name", ["prompt", "more", "model"])
def test_another_prompt_other_tools_or_another_model_go_on_with_what_was_done(name: str) -> None:
    case = CASES[name]
    assert case.output == "Done."
    assert case.effects == ["look", "pay 3", "pay 3"]
    assert case.answers == ["saw", "paid 3"]
    assert len(case.requests[1]) == 1
    if name == "prompt":
        assert case.requests[1][0].system_instructions == "Help better."
    if name == "model":
        assert case.requests[1][0].model == "gpt-second"


def test_a_tool_that_is_missing_in_the_new_program_has_its_stored_results() -> None:
    in_flight, finished = CASES["less"], CASES["less_finished"]
    assert finished.answers == ["saw", "paid 3"]
    assert in_flight.status == "parked"
    assert "has no tool or hand-off 'pay' any more" in (in_flight.error or "")
    assert in_flight.effects == ["look", "pay 3"]


@pytest.mark.parametrize(
    ("name", "agent", "error"),
    [
        ("newer_run", "?", "[E155] The stored step 'begin'"),
        ("damaged_run", "?", "[E155] The stored step 'begin'"),
        ("newer_step", "newer_step", "it has version 2, and this one reads up to 1; use the newer library"),
        ("damaged_step", "damaged_step", "cannot be used: it is damaged"),
    ],
)
def test_a_run_that_cannot_be_made_is_parked_with_the_reason(
    database: str, name: str, agent: str, error: str
) -> None:
    left = _left(database)
    matching = [run for run in left if run.agent == agent and error in (run.error or "")]
    assert matching, left
    assert CASES[name].requests[1] == []
    assert CASES[name].effects == ["look", "pay 3"]


def test_a_run_that_could_not_be_made_goes_on_where_it_can(database: str, tmp_path: Path) -> None:
    with opened(database) as connection:  # a copy: the other tests look at what is stored now
        connection.execute("VACUUM INTO ?", (str(tmp_path / "runs.sqlite3"),))
    database = f"sqlite:///{tmp_path / 'runs.sqlite3'}"
    newer = next(run for run in _left(database) if run.agent == "newer_step")
    # Nobody has taken a run whose agent no process had.
    unknown = next(run for run in asyncio.run(DurableRuns(database).list_runs(status="queued")))
    assert unknown.agent == "unknown"
    with opened(database) as connection:  # a newer library reads what it has written
        connection.execute(
            "UPDATE kantan_agents_durable_steps SET body = replace(body, ?, ?) WHERE root_id = ?",
            ('"v":2', '"v":1', newer.run_id),
        )
    with OfflineServer(lambda request: _REPLIES[len(results(request))]) as server:
        cases = {"newer_step": Case(_plain, is_first=False), "unknown": Case(_plain, is_first=False)}
        outcomes = asyncio.run(_resumed(database, server, cases, [newer.run_id, unknown.run_id]))
    assert outcomes == ["Done.", "Done."]
    assert [case.effects for case in cases.values()] == [["pay 3"], ["pay 3"]]
    assert [run for run in _left(database) if run.run_id in (newer.run_id, unknown.run_id)] == []


def _left(database: str) -> list[DurableRun]:
    return asyncio.run(DurableRuns(database).list_runs(status="parked"))


async def _resumed(
    database: str, server: OfflineServer, cases: dict[str, Case], run_ids: list[str]
) -> list[Any]:
    for name, case in cases.items():
        case.name, case.server = name, server
    agents = [case.build(case) for case in cases.values()]
    async with DurableRuns(database, agents=agents, look_interval=LOOK_INTERVAL) as runs:
        await runs.resume(run_ids[0])
        outcomes = [(await runs.result(run_id, timeout=120)).output for run_id in run_ids]
        assert [(await runs.get(run_id)).error for run_id in run_ids] == [None, None]
    return outcomes


def test_a_run_that_version_1_has_stored_is_finished(tmp_path: Path) -> None:
    stored = json.loads(version_1.FILE.read_text(encoding="utf-8"))
    database = f"sqlite:///{tmp_path / 'runs.sqlite3'}"
    case = version_1.case_of()
    case.name, case.is_first = "version_1", False
    asyncio.run(version_1.SESSION.add_items([{"role": "user", "content": "Go."}]))
    with OfflineServer(case.reply) as server:
        case.server = server
        case.replies = version_1.reply
        outcome = asyncio.run(_put_and_made(database, stored, version_1.agent_of(case)))
    assert outcome.output == {"total": 3}
    assert outcome.context["user"] == "aiko"
    assert outcome.context["kept"]["[email_1]"] == version_1.MAIL
    assert case.effects == [f"pay {version_1.MAIL}"]
    assert len(case.requests[1]) == 1
    assert case.answers == [
        "{'mail': '[email_1]', 'numbers': [1, 2.5, None, True]}",
        str([{"type": "input_text", "text": "shown"}]),
        case.answers[2],
        case.answers[3],
        "fine",
        "paid",
    ]
    # Newer versions of the SDK do not show the model what the error was.
    assert case.answers[2].startswith("An error occurred while running the tool. Please try again.")
    assert "[E8] Tool is not allowed: forbidden" in case.answers[3]


async def _put_and_made(database: str, stored: dict[str, Any], agent: Agent[Any]) -> DurableOutcome:
    def put() -> None:
        tables = RunDatabase(database)
        tables.open()
        tables.close()
        with opened(database) as connection:
            connection.execute(
                "INSERT INTO kantan_agents_durable_runs VALUES (?, 'gone', 1, 0)", (stored["run_id"],)
            )
            connection.executemany(
                "INSERT INTO kantan_agents_durable_steps VALUES (?, ?, ?, ?)",
                [
                    (
                        stored["run_id"],
                        step["run_id"],
                        step["step"],
                        step["body"] and json.dumps(step["body"]),
                    )
                    for step in stored["steps"]
                ],
            )

    await asyncio.to_thread(put)
    async with DurableRuns(database, agents=[agent], look_interval=LOOK_INTERVAL) as runs:
        await runs.enqueue(Job(stored["run_id"], json.dumps(stored["stored"]), resumed_queue(agent.name)))
        return await runs.result(stored["run_id"], timeout=120)


def test_what_is_stored_now_is_still_version_1() -> None:
    stored = json.loads(version_1.FILE.read_text(encoding="utf-8"))
    now = version_1.written()
    assert _shape(now["stored"]) == _shape(stored["stored"])
    for step in now["steps"]:
        for name in _SINCE & {*(step["body"] or ())}:
            del step["body"][name]
    assert {step["step"]: _shape(step["body"]) for step in now["steps"]} == {
        step["step"]: _shape(step["body"]) for step in stored["steps"]
    }


_SINCE = {"inside", "once", "unknown", "final_tool", "cut_off"}
"""Keys that were added to the bodies of steps since. Earlier versions of the library leave them alone."""


def test_half_a_character_can_be_stored_and_only_errors_lose_it() -> None:
    for text in ("half \ud83d", "\u00e9 \U0001f600"):
        stored = dump({"text": text})
        assert stored.encode()
        assert load("r", "begin", stored)["text"] == text
    # DBOS stores the messages of errors: a run that had failed with a half went on for ever.
    assert message_of(ValueError("half \ud83d")) == "half \ufffd"


def _shape(value: Any) -> Any:
    """Return what data looks like, without its texts."""
    if isinstance(value, dict):
        # Items are the SDK's, whose versions differ.
        return {name: name in ("output", "items") or _shape(one) for name, one in value.items()}
    return [_shape(one) for one in value] if isinstance(value, list) else type(value).__name__
