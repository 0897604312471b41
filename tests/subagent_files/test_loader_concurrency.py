"""One loader used by many tasks and threads: nothing blocks, no change is missed."""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest
from blockbuster import blockbuster_ctx

from kantan_agents import AgentDefinition, AgentLoader
from kantan_agents.errors import AgentNotFoundError
from kantan_agents.subagent_files.frontmatter.document import read_regular_file
from kantan_agents.subagent_files.loading import loader, scan
from kantan_agents.subagent_files.loading.scan import PathState, signature_at
from tests.subagent_files.agent_tree import write, write_text

NAMES = [f"agent-{number}" for number in range(8)]


@pytest.fixture
def agents(tmp_path: Path) -> AgentLoader:
    for name in NAMES:
        write(tmp_path / f"{name}.md", name, "0")
    return AgentLoader([tmp_path], cache_size=4, recheck_seconds=0)


async def test_only_a_stat_runs_on_the_event_loop(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "a")
    agents = AgentLoader([tmp_path], recheck_seconds=3600)
    await agents.load_agents()
    with blockbuster_ctx() as found:
        with pytest.raises(Exception, match=r"(?i)blocking"):
            os.stat(tmp_path)  # noqa: PTH116 - the check itself is checked
        found.functions["os.stat"].can_block_in("subagent_files/loading/scan.py", {"signature_at"})
        assert (await agents.load_agents()).names() == ("a",)
        assert (await agents.get_agent("a")).name == "a"
        await anyio.to_thread.run_sync(write, tmp_path / "a.md", "a", "new")
        assert (await agents.get_agent("a")).system_prompt == "new"
        with pytest.raises(AgentNotFoundError):
            await agents.get_agent("b")


async def test_eight_tasks_and_four_threads_get_current_definitions(
    agents: AgentLoader, tmp_path: Path
) -> None:
    wrong: list[str] = []
    done = threading.Event()

    def edit() -> None:
        number = 0
        while not done.is_set():
            number += 1
            # Replace the file atomically, as editors and version control do.
            write(tmp_path / "new", NAMES[number % 8], str(number)).replace(
                tmp_path / f"{NAMES[number % 8]}.md"
            )

    def check(catalog: list[AgentDefinition]) -> None:
        if sorted(agent.name for agent in catalog) != sorted(NAMES):
            wrong.append(f"loaded {len(catalog)}")

    def ask_in_a_thread() -> None:
        for name in NAMES:
            check(list(agents.load_agents_now()))
            if agents.get_agent_now(name).name != name:
                wrong.append(name)

    async def ask() -> None:
        for name in NAMES:
            check(list(await agents.load_agents()))
            if (await agents.get_agent(name)).name != name:
                wrong.append(name)

    with ThreadPoolExecutor(5) as threads:
        editing = threads.submit(edit)
        asking = [threads.submit(ask_in_a_thread) for _ in range(4)]
        try:
            async with anyio.create_task_group() as tasks:
                for _ in range(8):
                    tasks.start_soon(ask)
            for future in asking:
                await anyio.to_thread.run_sync(future.result)
        finally:
            done.set()
        await anyio.to_thread.run_sync(editing.result)
    assert wrong == []
    fresh = AgentLoader([tmp_path]).load_agents_now()
    assert list(agents.load_agents_now()) == list(fresh)


async def test_cancelling_a_waiting_task_does_not_affect_the_others(
    agents: AgentLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, go_on = threading.Event(), threading.Event()

    def slowly(path: str, limit: int) -> tuple[bytes, os.stat_result]:
        reading.set()
        go_on.wait(60)
        return read_regular_file(path, limit)

    monkeypatch.setattr("kantan_agents.subagent_files.loading.cache.read_regular_file", slowly)
    loaded: list[int] = []

    async def load() -> None:
        loaded.append(len(await agents.load_agents()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(load)
        await anyio.to_thread.run_sync(reading.wait)
        try:
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(agents.get_agent, NAMES[0])
                waiting.start_soon(agents.load_agents)
                await anyio.lowlevel.checkpoint()
                waiting.cancel_scope.cancel()
            assert loaded == []
        finally:
            go_on.set()
    assert loaded == [8]
    assert (await agents.get_agent(NAMES[0])).name == NAMES[0]


class TestManyDirectories:
    """More directories than are checked on the event loop."""

    @pytest.fixture
    def many(self, tmp_path: Path) -> AgentLoader:
        for number in range(60):
            write(tmp_path / str(number) / "a.md", f"agent-{number}")
        return AgentLoader([tmp_path], recheck_seconds=3600)

    @pytest.mark.usefixtures("_settled")
    async def test_no_stat_runs_on_the_event_loop(
        self, many: AgentLoader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await many.load_agents()
        looking: list[int] = []

        def recorded(path: str) -> PathState:
            looking.append(threading.get_ident())
            return signature_at(path)

        monkeypatch.setattr(scan, "signature_at", recorded)
        assert (await many.get_agent("agent-7")).name == "agent-7"
        assert len(looking) == 61
        assert threading.get_ident() not in looking
        await anyio.to_thread.run_sync(write, tmp_path / "0" / "new.md", "new")
        assert (await many.get_agent("new")).name == "new"
        assert threading.get_ident() not in looking

    @pytest.mark.usefixtures("_settled")
    async def test_concurrent_calls_share_one_check(
        self, many: AgentLoader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await many.load_agents()
        looked: list[str] = []
        looking, go_on = threading.Event(), threading.Event()

        def slowly(path: str) -> PathState:
            looked.append(path)
            if not looking.is_set():
                looking.set()
                go_on.wait(60)
            return signature_at(path)

        monkeypatch.setattr(scan, "signature_at", slowly)
        found: list[str] = []

        async def ask(name: str) -> None:
            found.append((await many.get_agent(name)).name)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "agent-0")
            await anyio.to_thread.run_sync(looking.wait, 60)
            for number in range(1, 60):
                tasks.start_soon(ask, f"agent-{number}")
            await anyio.wait_all_tasks_blocked()
            go_on.set()
        assert sorted(found) == sorted(f"agent-{number}" for number in range(60))
        assert len(looked) == 2 * 61


async def test_loads_requested_during_a_load_share_the_next_one_and_see_earlier_changes(
    agents: AgentLoader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, go_on = threading.Event(), threading.Event()
    listings: list[scan.Listing] = []

    def slowly(path: str, limit: int) -> tuple[bytes, os.stat_result]:
        reading.set()
        go_on.wait(60)
        return read_regular_file(path, limit)

    def recorded(*given: Any) -> scan.Listing:
        listings.append(scan.list_files(*given))
        return listings[-1]

    monkeypatch.setattr("kantan_agents.subagent_files.loading.cache.read_regular_file", slowly)
    monkeypatch.setattr(loader, "list_files", recorded)
    loaded: list[int] = []

    async def load() -> None:
        loaded.append(len(await agents.load_agents()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(load)
        await anyio.to_thread.run_sync(reading.wait, 60)
        write(tmp_path / "new.md", "new")
        for _ in range(20):
            tasks.start_soon(load)
        await anyio.wait_all_tasks_blocked()
        go_on.set()
    assert loaded == [8] + [9] * 20
    assert len(listings) == 2


async def test_a_log_handler_may_call_the_loader(agents: AgentLoader, tmp_path: Path) -> None:
    write_text(tmp_path / "broken.md", "---\nnothing\n---\n")
    asked: list[str] = []

    class Asking(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            # In a daemon thread: if the loader still held its lock, this call would never return.
            asking = threading.Thread(target=self.ask, daemon=True)
            asking.start()
            asking.join(60)

        def ask(self) -> None:
            asked.append(agents.get_agent_now(NAMES[0]).name)

    log, handler = logging.getLogger("kantan_agents.definitions"), Asking()
    log.addHandler(handler)
    try:
        assert len(await agents.load_agents()) == 8
    finally:
        log.removeHandler(handler)
    assert asked == [NAMES[0]]
