"""What durable runs show and store of secrets."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent, Durable, DurableRuns
from kantan_agents.cli.terminal.durable_database import database_url
from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.durable.storage.steps import StepStore
from kantan_agents.errors import DurableDatabaseError, DurableRunFailedError
from kantan_agents.testing import OfflineServer

KEY = "sk-proj-Abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hidden1@127.0.0.1:1/db",
        "postgresql://me@127.0.0.1:1/db?password=hidden1",
        "postgresql://me@127.0.0.1:1/db?sslmode=disable&sslpassword=hidden1",
        "postgresql://me@127.0.0.1:1/db?pass%77ord=hidden1",
        "postgresql://me@127.0.0.1:1/db?password=hidden%31",
        "postgresql://me@127.0.0.1:1/db?pasword=hidden1",
        "postgresql://me:a/hidden1@127.0.0.1:1/db",
        "host=127.0.0.1 port=1 password=hidden1",
        "mysql://me:hidden1@127.0.0.1/db",
        "password=hidden1",
    ],
)
async def test_no_text_has_the_password_of_a_url(url: str) -> None:
    shown = []
    try:
        runs = DurableRuns(database_url(url))
        shown += [repr(runs), runs.database]
        await runs.list_runs()
    except DurableDatabaseError as error:
        shown += [str(error), repr(error)]
    assert len(shown) > 1
    assert not [text for text in shown if "hidden1" in text or "hidden%31" in text]


async def test_a_failed_run_is_one_line_without_its_secrets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> None:
        raise RuntimeError(f"refused:\nAuthorization: Bearer {KEY}")

    monkeypatch.setattr(logging.getLogger("dbos"), "propagate", True)
    with OfflineServer([]) as server:
        agent = Agent("a", "Help.", model=server.bundle(), middleware=[Durable(), fail])
        database = f"sqlite:///{tmp_path / 'runs.sqlite3'}"
        async with DurableRuns(database, agents=[agent], queues=["jobs"], look_interval=0.05) as runs:
            run_id = await agent.enqueue("Go.", queue="jobs")
            with pytest.raises(DurableRunFailedError, match="Bearer") as raised:
                await runs.result(run_id, timeout=60)
            assert KEY not in str(raised.value)
            assert KEY not in str((await runs.get(run_id)).error)
            # What the caller of a run gets is the error itself.
            with pytest.raises(RuntimeError, match=KEY):
                await agent.run_async("Go.")
    assert KEY.encode() not in (tmp_path / "runs.sqlite3").read_bytes()
    failed = [one for one in caplog.records if one.levelno >= logging.ERROR]
    assert [one.name for one in failed if one.name == "dbos"] == []
    assert not [one for one in caplog.records if KEY in one.getMessage() or one.exc_info]
    assert "shortened" not in str(logging.getLogger("dbos").filters)


def test_other_records_of_the_engine_are_one_line_too(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kantan_agents.durable.engines.dbos_log import one_line_each

    logger = logging.getLogger("dbos")
    monkeypatch.setattr(logger, "propagate", False)  # as DBOS does when it starts
    as_before = one_line_each(lambda text: text.replace(KEY, "***"))
    logger.addHandler(caplog.handler)
    try:
        logger.error("Two\nlines of %s", KEY, exc_info=ValueError(f"of\n{KEY}"))
    finally:
        logger.removeHandler(caplog.handler)
        as_before()
    (record,) = [one for one in caplog.records if one.name == "dbos"]
    assert record.getMessage() == "Two lines of *** ValueError: of ***"
    assert not record.exc_info


def test_the_reason_that_an_earlier_version_has_stored_is_shown_without_its_secrets(tmp_path: Path) -> None:
    place = RunDatabase(f"sqlite:///{tmp_path / 'runs.sqlite3'}")
    place.open()
    StepStore(place).set_aside("run", f"refused: Authorization: Bearer {KEY}")
    assert KEY not in StepStore(place).reasons(["run"])["run"]
    place.close()
