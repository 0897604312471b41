"""Durable runs with any text in them: half surrogate pairs, zero characters and all others."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent, Durable, DurableRuns
from kantan_agents.durable import Limits
from kantan_agents.durable.execution import Execution
from kantan_agents.durable.step_bodies import dump
from kantan_agents.durable.storage.approvals import ApprovalStore
from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.durable.storage.steps import StepStore
from kantan_agents.errors import (
    ApprovalAnswerError,
    DurableRunFailedError,
    DurableRunNotFoundError,
    InvalidOptionError,
)
from kantan_agents.middleware import Approve
from kantan_agents.middleware.approve.calls import Rejected
from kantan_agents.testing import OfflineServer, function_call

# The second halves first, as two that follow each other are one character when they are read.
ODD = "".join(
    map(
        chr,
        (*range(0x300), *range(0xDC00, 0xE010), *range(0xD7F0, 0xDC00), 0xFFFE, 0xFFFF, 0x1F600, 0x10FFFF),
    )
)
# Longer than a row of an index in Postgres, which would compress letters that repeat.
LONG = "".join(sha256(bytes([number])).hexdigest() for number in range(80))
PLACES = ("file", "server")


@pytest.fixture(params=PLACES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return f"sqlite:///{tmp_path / 'runs.sqlite3'}"
    return str(request.getfixturevalue("postgres_url"))


def _agent(server: OfflineServer, *middleware: Any) -> Agent[str]:
    async def odd() -> str:
        """Return every character."""
        return ODD

    return Agent("a", "Help.", model=server.bundle(), tools=[odd], middleware=[Durable(), *middleware])


async def test_a_run_takes_any_text_and_people_answer_it_with_any(database: str) -> None:
    with OfflineServer([[function_call("odd", {}, call_id=LONG)], "Done."]) as server:
        agent = _agent(server, Approve("odd"))
        options: Any = {"queues": {"jobs": Limits()}, "keep_events": True, "look_interval": 0.05}
        async with DurableRuns(database, agents=[agent], **options) as runs:
            run_id = await agent.enqueue(f"Go {ODD}", {"key": ODD}, queue="jobs")
            while not await runs.list_approvals(run_id=run_id):
                assert (await runs.get(run_id)).status != "failed"
            await runs.approve(run_id, LONG, by=f"Ann {ODD}")
            outcome = await runs.result(run_id, timeout=60)
            assert outcome.output == "Done."
            assert outcome.context["key"] == ODD
            (call,) = await runs.list_approvals(answered=True, run_id=run_id)
            assert call.answered_by is not None
            assert call.answered_by.startswith("Ann \N{SYMBOL FOR NULL}\x01")
            assert [event async for event in runs.events(outcome.run_id, follow=False)]


async def test_an_error_has_any_text(database: str) -> None:
    async def fail(*_: Any) -> None:
        raise RuntimeError(ODD)

    with OfflineServer([]) as server:
        agent = _agent(server, fail)
        async with DurableRuns(database, agents=[agent], queues=["jobs"], look_interval=0.05) as runs:
            run_id = await agent.enqueue("Go.", queue="jobs")
            with pytest.raises(DurableRunFailedError):
                await runs.result(run_id, timeout=60)
            assert "\N{SYMBOL FOR NULL}\x01" in str((await runs.get(run_id)).error)


@pytest.mark.parametrize("name", ["\0", "a\ud800", ODD])
async def test_ids_and_names_that_cannot_be_are_refused(database: str, name: str) -> None:
    runs = DurableRuns(database)
    try:
        for asked in (runs.get(name), runs.cancel(name), runs.resume(name), runs.result(name)):
            with pytest.raises(DurableRunNotFoundError):
                await asked
        with pytest.raises(ApprovalAnswerError):
            await runs.reject(name, name, by=name, reason=name)
        assert await runs.list_approvals(run_id=name) == []
        for refused in (
            runs.list_runs(queue=name),
            runs.unschedule(name),
            runs.schedule(name, "* * * * *", "a", "Go.", queue="jobs"),
        ):
            with pytest.raises(InvalidOptionError):
                await refused
    finally:
        await runs.stop()


async def test_a_step_of_any_name_is_found_again(database: str) -> None:
    place = RunDatabase(database)
    place.open()
    try:
        first, again = (Execution("run", StepStore(place), frozenset()) for _ in range(2))
        await first.begin()
        await first.start("run", f"begun/{ODD}")
        await first.finish("run", f"tool/{ODD}", {"result": ODD})
        await again.begin()
        assert (again.known("run", f"tool/{ODD}") or {})["result"] == ODD
        assert again.was_begun("run", f"begun/{ODD}")
        with pytest.raises(ApprovalAnswerError):
            ApprovalStore(place).answer("run", ODD, Rejected(ODD), ODD)
    finally:
        place.close()


async def test_a_step_that_an_earlier_version_has_stored_by_its_long_name_is_found(tmp_path: Path) -> None:
    place = RunDatabase(f"sqlite:///{tmp_path / 'runs.sqlite3'}")
    place.open()
    try:
        first, again = (Execution("run", StepStore(place), frozenset()) for _ in range(2))
        await first.begin()
        step = f"tool/{'a' * 3_000}"
        StepStore(place).finish("run", first.id, "run", step, dump({"result": "kept"}))
        await again.begin()
        assert (again.known("run", step) or {})["result"] == "kept"
    finally:
        place.close()
