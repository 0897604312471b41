"""Only the owner may read the database of durable runs and the files beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kantan_agents import Agent, Durable, DurableRuns
from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.testing import ScriptedModel

pytestmark = pytest.mark.skipif(os.name == "nt", reason="files have no modes there")


@pytest.fixture(autouse=True)
def _no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}


def test_a_new_database_is_private_also_if_it_replaces_a_deleted_one(tmp_path: Path) -> None:
    database = RunDatabase(f"sqlite:///{tmp_path}/runs.db")
    for _ in range(2):
        database.open()
        assert modes(tmp_path) == {"runs.db": 0o600, "runs.db-wal": 0o600, "runs.db-shm": 0o600}
        for path in tmp_path.iterdir():
            path.unlink()
        database.close()


def test_an_existing_database_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "runs.db").touch(mode=0o660)
    database = RunDatabase(f"sqlite:///{tmp_path}/runs.db")
    database.open()
    assert set(modes(tmp_path).values()) == {0o660}
    database.close()


@pytest.mark.slow
async def test_the_engine_creates_nothing_that_others_may_read(tmp_path: Path) -> None:
    agent = Agent("clerk", "Help.", model=ScriptedModel(["Hello."]), middleware=[Durable()])
    async with DurableRuns(f"sqlite:///{tmp_path}/runs.db", agents=[agent]):
        await agent.run_async("Hi.")
        found = modes(tmp_path)
    assert found == {"runs.db": 0o600, "runs.db-wal": 0o600, "runs.db-shm": 0o600, "runs.db.workers": 0o700}
