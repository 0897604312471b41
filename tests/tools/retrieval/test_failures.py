"""A retriever that fails: all tools are shown, and the reason is logged once."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import anyio
import pytest

from kantan_agents import ToolRetrieval
from kantan_agents.errors import RetrievalError
from kantan_agents.tools.retrieval import BM25Retriever, CombinedRetriever, ToolMatch
from kantan_agents.tools.retrieval.retrievers.combined import fused
from tests.tools.retrieval.conftest import FRUIT, Saying, calling, finding, fruit_agent, outputs, shown

ALL = list(FRUIT)


def raising(error: BaseException) -> Any:
    def fail(*_: Any) -> Any:
        raise error

    return fail


class BadIndex:
    def __init__(self, index: Any) -> None:
        self.index = index


async def hang(*_: Any) -> Any:
    await anyio.sleep_forever()


@pytest.mark.parametrize(
    ("retriever", "reason"),
    [
        (Saying(raising(OSError("no route"))), "search() raised OSError: no route"),
        (Saying(None), "search() must return a list of ToolMatch, not None"),
        (Saying([1]), "search() must return a list of ToolMatch"),
        (
            Saying(raising(asyncio.CancelledError())),
            "search() raised RuntimeError: it was cancelled from within",
        ),
        (Saying(lambda: [ToolMatch(["fig"], 1)]), "must be the name of a ToolDocument, not ['fig']"),
        (Saying(lambda: [ToolMatch("fig", float("nan"))]), "must be a finite number, not nan"),
        (
            CombinedRetriever([BM25Retriever(), Saying(raising(asyncio.CancelledError()))]),
            "search() raised RuntimeError: it was cancelled from within",
        ),
        (BadIndex(raising(ValueError("bad"))), "index() raised ValueError: bad"),
        (BadIndex(lambda documents: None), "index() must return an object with search(), not NoneType"),
        (
            CombinedRetriever([BM25Retriever(), Saying(raising(KeyError("x")))]),
            "search() raised KeyError: 'x'",
        ),
    ],
)
async def test_all_tools_are_shown_and_the_reason_is_logged_once(
    retriever: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = calling(finding("fig"))
    agent = fruit_agent(model, retriever=retriever)
    with caplog.at_level(logging.WARNING, "kantan_agents.retrieval"):
        await agent.run_async("an apple")
        selection = await agent.select_tools("an apple")
    assert shown(model) == [ALL, ALL]
    records = [record for record in caplog.records if record.name == "kantan_agents.retrieval"]
    assert len(records) == 1
    assert "[E57]" in records[0].reason  # type: ignore[attr-defined]
    assert reason in records[0].reason  # type: ignore[attr-defined]
    assert selection.shown == ALL
    assert reason in str(selection.failed)


@pytest.mark.parametrize("where", ["search", "index"])
async def test_a_retriever_that_hangs_times_out(where: str) -> None:
    retriever: Any = Saying(["fig"])
    setattr(retriever, where, hang)
    model = calling()
    await fruit_agent(model, retriever=retriever, timeout=0.02, index_timeout=0.02).run_async("x")
    assert shown(model) == [ALL]


async def test_a_failure_during_a_run_shows_all_tools_from_the_next_turn_on() -> None:
    retriever: Saying = Saying(lambda: ["fig"] if len(retriever.asked) == 1 else raising(OSError("gone"))())
    model = calling(finding("apple"))
    await fruit_agent(model, retriever=retriever).run_async("x")
    assert shown(model) == [["find_tools", "fig"], ALL]
    assert outputs(model) == ["The search has failed, so all tools are shown to you from now on."]


async def test_unknown_and_duplicate_matches_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    model = calling()
    retriever = Saying(["fig", "stone", "fig", "plum"])
    with caplog.at_level(logging.WARNING, "kantan_agents.retrieval"):
        await fruit_agent(model, retriever=retriever).run_async("x")
    assert shown(model) == [["find_tools", "plum", "fig"]]
    assert "a tool that this agent does not have: 'stone'" in caplog.records[0].reason  # type: ignore[attr-defined]


async def test_the_index_is_created_once_for_concurrent_runs() -> None:
    retriever = Saying(["fig"])
    agent = fruit_agent(None, retriever=retriever)
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(agent.select_tools, "x")
    assert len(retriever.indexed) == 1
    assert [document.name for document in retriever.indexed[0]] == ALL


async def test_after_a_cancelled_run_another_run_creates_the_index() -> None:
    began = anyio.Event()
    retriever: Any = Saying(["fig"])
    made = retriever.index

    async def index(documents: Any) -> Any:
        if not began.is_set():
            began.set()
            await anyio.sleep_forever()
        return made(documents)

    retriever.index = index
    agent = fruit_agent(None, retriever=retriever)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.select_tools, "x")
        await began.wait()
        group.cancel_scope.cancel()
    assert (await agent.select_tools("x")).shown == ["fig"]


async def test_sync_retrievers_run_in_a_thread() -> None:
    threads = []

    class Sync:
        def index(self, documents: Any) -> Any:
            threads.append(threading.current_thread())
            return self

        def search(self, query: str, limit: int) -> list[ToolMatch]:
            threads.append(threading.current_thread())
            return [ToolMatch("fig", 1)]

    assert (await fruit_agent(None, retriever=Sync()).select_tools("x")).shown == ["fig"]
    assert threading.main_thread() not in threads


async def test_ranks_are_added_up() -> None:
    first = [ToolMatch(name, 1) for name in ("a", "b", "c")]
    second = [ToolMatch(name, 9) for name in ("c", "b", "d", "b")]
    assert [match.name for match in fused([first, second], 3)] == ["c", "b", "a"]
    combined = CombinedRetriever([Saying(["fig", "plum"]), Saying(["plum"])])
    selection = await fruit_agent(None, retriever=combined).select_tools("x")
    assert [match.name for match in selection.matches] == ["plum", "fig"]


@pytest.mark.parametrize("retrievers", [[], [1], None, "bm25"])
def test_a_combination_requires_retrievers(retrievers: Any) -> None:
    with pytest.raises(ValueError, match="at least one retriever"):
        CombinedRetriever(retrievers)


def test_the_error_names_retriever_and_reason() -> None:
    error = RetrievalError(retriever="Mine", reason="why")
    assert str(error) == "[kantan-agents][E57] Mine failed: why"
    assert ToolRetrieval() == ToolRetrieval()
