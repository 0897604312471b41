"""The frameworks on the SDK: every workload does its work, and raises an error if it does not."""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agents.tracing import get_trace_provider

from benchmarks.peers.catalog import WORKLOADS
from benchmarks.peers.compared import OURS, PLAIN
from benchmarks.peers.frameworks import facts
from benchmarks.peers.frameworks.sdk_model import FakeModel
from benchmarks.peers.model_server import reply
from benchmarks.peers.trace_databases import TraceDatabases, recorded
from kantan_agents import Agent, set_trace_processors
from kantan_agents.testing import OfflineServer

ENTRIES = {workload.entry for workload in WORKLOADS if workload.kind != "import"} | {"untraced"}


def module_of(name: str) -> Any:
    return importlib.import_module(f"benchmarks.peers.frameworks.{name}")


@pytest.fixture
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "traces.sqlite3"
    with OfflineServer(reply) as server:
        monkeypatch.setenv(facts.BASE_URL_VARIABLE, server.base_url)
        monkeypatch.setenv(facts.TRACE_FILE_VARIABLE, str(path))
        yield path
    end_tracing()


def end_tracing() -> None:
    """Write all recorded spans and close the file."""
    processor = get_trace_provider()._multi_processor  # type: ignore[attr-defined]  # no public way to it
    processor.shutdown()
    set_trace_processors([])


@pytest.mark.parametrize("name", [PLAIN, OURS, "kantan_agents_published"])
def test_every_workload_exists_or_is_declared_absent(name: str) -> None:
    module = module_of(name)
    present = {*module.RUNS, *module.CONSTRUCTIONS, *module.HELD}
    assert present | set(module.ABSENT) == ENTRIES
    assert not present & set(module.ABSENT)
    assert all(reason.endswith(".") for reason in module.ABSENT.values())


@pytest.mark.parametrize("name", [PLAIN, OURS])
@pytest.mark.parametrize("entry", sorted(ENTRIES))
async def test_a_workload_gives_what_is_expected(name: str, entry: str, surroundings: Path) -> None:
    module = module_of(name)
    if entry in module.CONSTRUCTIONS:
        make = module.CONSTRUCTIONS[entry]()
        assert make() is not make()
        return
    waits = 0

    async def wait() -> None:
        nonlocal waits
        waits += 1

    if entry in module.HELD:
        await module.HELD[entry](wait)()
        assert waits == 1
    else:
        await module.RUNS[entry]()()


@pytest.mark.parametrize("name", [PLAIN, OURS])
async def test_a_traced_run_is_in_the_file(name: str, surroundings: Path) -> None:
    run = module_of(name).RUNS["traced"]()
    await run()
    await run()
    end_tracing()
    assert recorded(surroundings).traces == 2
    with closing(sqlite3.connect(surroundings)) as connection:
        kinds = [kind for (kind,) in connection.execute("SELECT span_type FROM spans")]
    # With that of the model, which the SDK's own models leave as well.
    assert kinds.count("generation") >= 2
    assert len(kinds) % 2 == 0


def test_the_recorders_indexes_are_created_before_measuring(tmp_path: Path) -> None:
    databases = TraceDatabases(tmp_path)
    indexes = []
    for name in (PLAIN, OURS):
        with closing(sqlite3.connect(databases.path(name, 100, 0))) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql NOT NULL")
            indexes.append({index for (index,) in found})
    assert indexes[1] > indexes[0]


@pytest.mark.parametrize("name", ["pydantic_ai", "langgraph"])
def test_a_framework_that_is_not_installed_here_names_every_workload(name: str) -> None:
    text = (Path(facts.__file__).parent / f"{name}.py").read_text(encoding="utf-8")
    assert {entry for entry in ENTRIES if f'"{entry}": ' not in text} == set()


async def test_a_run_that_answers_something_else_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (PLAIN, OURS):
        run = module_of(name).RUNS["one_turn"]()
        monkeypatch.setattr(facts, "ANSWER", "It rains.")
        module = module_of(name)
        wrong = module._run(module._agent(FakeModel("It snows.")))
        with pytest.raises(ValueError, match="It snows"):
            await wrong()
        monkeypatch.undo()
        await run()


async def test_a_model_that_is_shown_too_few_tools_raises_an_error() -> None:
    with pytest.raises(ValueError, match=r"\(0, 0\)"):
        await Agent(facts.AGENT, facts.INSTRUCTIONS, model=FakeModel(tools=1)).run_async(facts.QUESTION)


def test_a_filled_database_is_copied_for_each_framework(tmp_path: Path) -> None:
    databases = TraceDatabases(tmp_path)
    one, other = databases.path("one", 100, 0), databases.path("other", 100, 0)
    assert one != other
    assert recorded(one) == recorded(other)
    assert recorded(one).spans >= 100
    assert databases.path("one", 100, 1) == one
    assert not databases.path("one", 0, 1).exists()
