"""Work that is shared by those who ask before it begins, and by nobody who asks later."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import anyio
import attrs
import pytest

from kantan_agents.definitions.loading.shared_work import SharedWork


@attrs.define
class Job:
    """Work that waits for leave to end, and says how often it was done."""

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


def shared(work: Callable[[], int], afterwards: Callable[[int], object] = bool) -> SharedWork[int]:
    return SharedWork(work, threading.Lock(), afterwards)


@pytest.fixture
def job() -> Iterator[Job]:
    job = Job()
    yield job
    job.go_on.set()


async def wait_until_begun(job: Job) -> None:
    await anyio.to_thread.run_sync(job.begun.wait, 60)


@pytest.mark.anyio
async def test_who_asks_while_it_is_done_gets_what_is_done_next(job: Job) -> None:
    work, found = shared(job), []

    async def ask() -> None:
        found.append(await work.soon())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await wait_until_begun(job)
        for _ in range(50):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        job.go_on.set()
    assert found == [1] + [2] * 50


@pytest.mark.anyio
async def test_however_many_ask_and_give_up_one_thread_works_and_one_waits(job: Job) -> None:
    work = shared(job)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work.soon)
        await wait_until_begun(job)
        before = threading.active_count()
        for _ in range(50):
            async with anyio.create_task_group() as given_up:
                given_up.start_soon(work.soon)
                await anyio.wait_all_tasks_blocked()
                given_up.cancel_scope.cancel()
        assert threading.active_count() <= before + 1
        job.go_on.set()
    # What was given up is done all the same; this is the time after it, or that time itself.
    assert await work.soon() in (2, 3)


@pytest.mark.anyio
async def test_who_gives_up_takes_it_from_nobody_else(job: Job) -> None:
    work, found = shared(job), []

    async def ask() -> None:
        found.append(await work.soon())

    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as given_up:
            given_up.start_soon(work.soon)
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            given_up.cancel_scope.cancel()
        job.go_on.set()
    assert len(found) == 1


def test_threads_share_it_too(job: Job) -> None:
    work = shared(job)
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(work.now)
        assert job.begun.wait(60)
        others = [threads.submit(work.now) for _ in range(7)]
        job.go_on.set()
        assert first.result() == 1
        assert all(other.result() > 1 for other in others)


@pytest.mark.anyio
async def test_what_goes_wrong_is_raised_to_all_and_the_next_time_is_another(job: Job) -> None:
    work, failed = shared(job), []
    job.fails = True

    async def ask() -> None:
        with pytest.raises(LookupError) as caught:
            await work.soon()
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
    assert await work.soon() == 3


def test_what_is_done_afterwards_may_ask_for_it_again(job: Job) -> None:
    again: list[int] = []

    def ask_once_more(found: int) -> None:
        if found == 1:
            # In a thread that can be left behind: if the turn were still taken, it would wait for ever.
            asking = threading.Thread(target=lambda: again.append(work.now()), daemon=True)
            asking.start()
            asking.join(60)

    work = shared(job, ask_once_more)
    job.go_on.set()
    assert (work.now(), again) == (1, [2])
