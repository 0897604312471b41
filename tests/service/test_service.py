"""The application of docs/guides/deploying.md under uvicorn, with real HTTP clients."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from kantan_agents import TraceStore
from kantan_agents.testing import OfflineServer, RecordedRequest, Reply
from tests.service.conftest import Serve
from tests.service.service_process import (
    PAGE,
    QUESTION,
    SECONDS,
    Message,
    Messages,
    Service,
    read_stream,
    until,
)
from tests.service.slow_client import SlowClient
from tests.service.watched_server import (
    NEVER,
    WatchedServer,
    answer_for,
    customer_of,
    is_last_turn,
    order_then_answer,
)

pytestmark = pytest.mark.anyio

HELD_DELTAS = 8
HELD_AFTER = 4 + HELD_DELTAS  # the head of the response, and three events before the first text
SHOWN = {"run_started", "tool_call_started", "text_delta", "handed_off", "run_finished", "run_cancelled"}


def held_while_leaving(request: RecordedRequest) -> int | None:
    """Hold the last answer of customers who leave: nobody of them is too late to leave in the middle."""
    return HELD_AFTER if customer_of(request).startswith("leaving") and is_last_turn(request) else None


def after(number: int) -> Callable[[list[Message]], bool]:
    """Hang up after so many messages."""
    return lambda read: len(read) == number


def has_been_silent(read: list[Message]) -> bool:
    """Hang up after three signs of life in a row, behind the last text that comes."""
    kinds = [one.kind for one in read]
    return kinds[-3:] == ["comment"] * 3 and kinds.count("text_delta") == HELD_DELTAS


def text_of(messages: list[Message]) -> str:
    return "".join(message.data["text"] for message in messages if message.kind == "text_delta")


def whole_answer(customer: str) -> str:
    return answer_for(customer, f"['a present for {customer}']")


async def nothing_is_left(service: Service, server: WatchedServer, before: dict[str, Any]) -> None:
    """Wait until the process is as it was before, and the model server has nobody to answer."""
    now: dict[str, Any] = {}

    async def as_before() -> bool:
        now.update(await service.state())
        same = now["tasks"] == before["tasks"] and now["sockets"] == before["sockets"]
        return same and server.under_way == 0

    await until(as_before, lambda: f"{Counter(now['tasks'])}, {now['sockets']} sockets, {server.under_way}")


def spans_without_end(database: Path) -> int:
    connection = sqlite3.connect(database)
    try:
        (count,) = connection.execute("SELECT count(*) FROM spans WHERE ended_at IS NULL").fetchone()
    finally:
        connection.close()
    return int(count)


@pytest.mark.parametrize(
    ("clients", "middleware"), [(200, False), (40, True)], ids=["200 clients", "BaseHTTPMiddleware"]
)
async def test_clients_that_hang_up_leave_nothing_behind_and_the_others_get_their_own_answers(
    serve_with: Serve, clients: int, middleware: bool
) -> None:
    with WatchedServer(order_then_answer, held_while_leaving) as server:
        service = serve_with(server, middleware=middleware)
        got: dict[str, list[Message]] = {}

        async def stay(client: Any, customer: str) -> None:
            got[customer] = await read_stream(client, customer)

        async with service.client() as client:
            await stay(client, "warm-up")
        before = await service.state()
        async with service.client() as client, anyio.create_task_group() as everybody:
            for number in range(clients):
                if number % 4 == 0:
                    everybody.start_soon(read_stream, client, f"leaving-{number}", after(1 + number // 4 % 7))
                else:
                    everybody.start_soon(stay, client, f"staying-{number}")
        await nothing_is_left(service, server, before)
        told = Counter((await service.state())["kinds"])
        assert service.end() != 0
    assert service.errors == ""

    staying = clients - clients // 4
    assert len(got) == staying + 1
    for customer, messages in got.items():
        assert text_of(messages) == whole_answer(customer)
        assert messages[-1] == Message("run_finished", messages[-1].id, {"output": whole_answer(customer)})
    assert told["run_started"] == clients + 1
    assert told["run_finished"] == staying + 1
    assert told["run_cancelled"] == clients // 4
    assert "run_failed" not in told

    database = service.folder / "traces.sqlite3"
    assert spans_without_end(database) == 0
    traces = TraceStore(database).traces(limit=None)
    assert len(traces) == clients + 1
    ended = Counter(trace.error for trace in traces)
    assert ended == {None: staying + 1, "CancelledError": clients // 4}


async def test_a_client_that_reads_slowly_holds_its_run_up(serve_with: Serve) -> None:
    pieces = 8_000
    text = "".join(f"{number:015} " for number in range(pieces))  # the model sends 16 letters at a time
    with OfflineServer([text]) as server:
        service = serve_with(server, send_buffer=4096)
        async with SlowClient(service.port) as client:
            await client.read_some(1000)
            told = await standstill(service)
            # 64 wait in the run's own buffer; what lies in those of uvicorn (64 KiB) and of the operating
            # system (made small) has been told as well.
            in_buffers = 120_000 // len(message_of("000000000000000 "))
            assert 64 < told < 64 + in_buffers < pieces // 2

            await client.read_rest()
        service.end()
    messages = list(Messages().feed(client.text))
    assert text_of(messages) == text
    assert messages[-1].data == {"output": text}


async def standstill(service: Service) -> int:
    """Return how many pieces of text have been told, once there are no more of them for a while."""
    told = [0]

    async def stands_still() -> bool:
        told.append(await service.told("text_delta"))
        return len(told) > 25 and 0 < told[-25] == told[-1]

    await until(stands_still)
    return told[-1]


def message_of(text: str) -> str:
    return f'id: 10\nevent: text_delta\ndata: {{"text": "{text}"}}\n\n'


async def test_open_streams_end_with_the_service_and_are_recorded_to_their_end(serve_with: Serve) -> None:
    with WatchedServer(order_then_answer, held_while_leaving) as server:
        service = serve_with(server, grace=1)
        ended: list[str] = []

        async def wait(client: httpx.AsyncClient, customer: str) -> None:
            with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
                await read_stream(client, customer)
            ended.append(customer)

        async with service.client() as client, anyio.create_task_group() as everybody:
            for number in range(10):
                everybody.start_soon(wait, client, f"leaving-{number}")

            async def all_are_held() -> bool:
                return await service.told("text_delta") >= 10 * HELD_DELTAS

            await until(all_are_held)
            service.ask_to_end()
        assert len(ended) == 10
        assert service.end() != 0
        assert server.under_way == 0
    database = service.folder / "traces.sqlite3"
    assert spans_without_end(database) == 0
    assert [trace.error for trace in TraceStore(database).traces()] == ["CancelledError"] * 10


async def test_an_answer_in_one_piece(serve_with: Serve) -> None:
    with OfflineServer(order_then_answer) as server:
        service = serve_with(server)
        async with service.client() as client:
            answer = await client.post("/answer", json=QUESTION, headers={"x-customer": "aiko"})
    assert answer.json() == {"output": answer_for("aiko", "['a lamp', 'a rug']")}


async def test_nobody_waits_for_an_answer_that_nobody_will_read(serve_with: Serve) -> None:
    with WatchedServer(order_then_answer, lambda request: 0 if is_last_turn(request) else NEVER) as server:
        service = serve_with(server)
        before = await service.state()
        async with service.client() as client:
            with anyio.move_on_after(SECONDS) as waiting:

                async def leave_when_held() -> None:
                    async def is_held() -> bool:
                        return await service.told("model_call_started") == 2

                    await until(is_held)
                    waiting.cancel()

                async with anyio.create_task_group() as both:
                    both.start_soon(leave_when_held)
                    await client.post("/answer", json=QUESTION, headers={"x-customer": "aiko"})
        await nothing_is_left(service, server, before)
        assert await service.told("run_cancelled") == 1
        service.end()
    assert service.errors == ""
    (trace,) = TraceStore(service.folder / "traces.sqlite3").traces()
    assert trace.error == "CancelledError"


async def test_a_run_that_fails_is_told_by_its_code_and_by_nothing_else(serve_with: Serve) -> None:
    with OfflineServer(lambda _: Reply("the key sk-very-secret is not known", status=401)) as server:
        service = serve_with(server)
        async with service.client() as client:
            ours = await read_stream(client, "mallory")
            theirs = await read_stream(client, "aiko")
            in_one_piece = [
                await client.post("/answer", json=QUESTION, headers={"x-customer": customer})
                for customer in ("mallory", "aiko")
            ]
        service.end()
    assert [one.kind for one in ours] == [one.kind for one in theirs] == ["run_started", "error"]
    assert ours[-1] == Message("error", None, {"code": "E18"})
    assert theirs[-1] == Message("error", None, {"code": "internal"})
    assert [answer.status_code for answer in in_one_piece] == [500, 500]
    assert in_one_piece[0].json() == {"code": "E18"}
    assert in_one_piece[1].text == "Internal Server Error"
    assert service.errors.count("AuthenticationError") > 0, "the service's own log says what it was"


async def test_a_run_that_says_nothing_for_a_while_gives_signs_of_life_and_loses_nothing(
    serve_with: Serve,
) -> None:
    with WatchedServer(order_then_answer, held_while_leaving) as server:
        service = serve_with(server, heartbeat=0.05)
        async with service.client() as client:
            messages = await read_stream(client, "leaving-1", has_been_silent)
        heard = await service.events(messages[0].data["run_id"])
        told = [(one.id, one.kind) for one in messages if one.kind != "comment"]
    assert told == [event for event in heard if event[1] in SHOWN and event[1] != "run_cancelled"]
    assert len(told) == 2 + HELD_DELTAS, "run_started, tool_call_started and the text up to the silence"


async def test_the_ids_are_the_sequence_numbers_of_the_events(serve_with: Serve) -> None:
    with OfflineServer(order_then_answer) as server:
        service = serve_with(server)
        async with service.client() as client:
            messages = await read_stream(client, "aiko")
        heard = await service.events(messages[0].data["run_id"])
    assert [sequence for sequence, _ in heard] == list(range(1, len(heard) + 1))
    assert [(one.id, one.kind) for one in messages] == [event for event in heard if event[1] in SHOWN]


async def test_what_the_page_shows_is_what_comes(serve_with: Serve) -> None:
    def reply(request: RecordedRequest) -> Any:
        made = order_then_answer(request)
        return "You ordered a lamp and a rug." if isinstance(made, str) else made

    with OfflineServer(reply) as server:
        service = serve_with(server)
        async with service.client() as client:
            answer = await client.post("/stream", json=QUESTION, headers={"x-customer": "aiko"})
        (transcript,) = (block.code for block in PAGE.blocks("text"))
        run_id = Message.of(answer.text.split("\n\n")[0]).data["run_id"]
    assert answer.text.replace(run_id, "...").strip() == transcript.strip()
