"""A run of shared work serves the requests made before it begins, and no later ones."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import anyio
import attrs
import pytest

from kantan_agents.subagent_files.loading.shared_work import SharedWork


@attrs.define
class Job:
    """Work that waits for ``go_on`` and returns how often it has run."""

    begun: threading.Event = attrs.field(factory=threading.Event)
    go_on: threading.Event = attrs.field(factory=threading.Event)
    times: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))
    fails: bool = False

    def __call__(self) -> int:
        self.begun.set()
        assert self.go_on.wait(60)
        time = next(self.times)
        if self.fails:
            raise LookupError(time)
        return time


def shared(work: Callable[[], int], on_done: Callable[[int], object] = bool) -> SharedWork[int]:
    return SharedWork(work, threading.Lock(), on_done)


@pytest.fixture
def job() -> Iterator[Job]:
    job = Job()
    yield job
    job.go_on.set()


async def wait_until_begun(job: Job) -> None:
    await anyio.to_thread.run_sync(job.begun.wait, 60)


async def test_a_request_during_a_run_gets_the_next_run(job: Job) -> None:
    work, found = shared(job), []

    async def ask() -> None:
        found.append(await work.run_async())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await wait_until_begun(job)
        for _ in range(50):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        job.go_on.set()
    assert found == [1] + [2] * 50


async def test_many_cancelled_requests_use_at_most_two_threads(job: Job) -> None:
    work = shared(job)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work.run_async)
        await wait_until_begun(job)
        before = threading.active_count()
        for _ in range(50):
            async with anyio.create_task_group() as cancelled:
                cancelled.start_soon(work.run_async)
                await anyio.wait_all_tasks_blocked()
                cancelled.cancel_scope.cancel()
        assert threading.active_count() <= before + 1
        job.go_on.set()
    # The cancelled requests still cause a run; this is that run or the next one.
    assert await work.run_async() in (2, 3)


async def test_a_cancelled_request_does_not_affect_the_others(job: Job) -> None:
    work, found = shared(job), []

    async def ask() -> None:
        found.append(await work.run_async())

    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as cancelled:
            cancelled.start_soon(work.run_async)
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            cancelled.cancel_scope.cancel()
        job.go_on.set()
    assert len(found) == 1


def test_threads_share_the_work_too(job: Job) -> None:
    work = shared(job)
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(work.run)
        assert job.begun.wait(60)
        others = [threads.submit(work.run) for _ in range(7)]
        job.go_on.set()
        assert first.result() == 1
        assert all(other.result() > 1 for other in others)


async def test_an_error_is_raised_in_all_callers_and_the_next_run_is_independent(job: Job) -> None:
    work, failed = shared(job), []
    job.fails = True

    async def ask() -> None:
        with pytest.raises(LookupError) as caught:
            await work.run_async()
        failed.append(caught.value.args)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await wait_until_begun(job)
        tasks.start_soon(ask)
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        job.go_on.set()
    assert failed == [(1,), (2,), (2,)]
    job.fails = False
    assert await work.run_async() == 3


def test_on_done_may_request_the_work_again(job: Job) -> None:
    again: list[int] = []

    def ask_once_more(found: int) -> None:
        if found == 1:
            # In a daemon thread: if the lock were still held, this call would never return.
            asking = threading.Thread(target=lambda: again.append(work.run()), daemon=True)
            asking.start()
            asking.join(60)

    work = shared(job, ask_once_more)
    job.go_on.set()
    assert (work.run(), again) == (1, [2])
