"""The application of docs/guides/deploying.md under uvicorn, with real HTTP clients."""

from __future__ import annotations

import itertools
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
from tests.agent.service.conftest import Serve
from tests.agent.service.service_process import (
    PAGE,
    QUESTION,
    SECONDS,
    Message,
    Messages,
    Service,
    read_stream,
    until,
)
from tests.agent.service.slow_client import SlowClient
from tests.agent.service.watched_server import (
    NEVER,
    WatchedServer,
    answer_for,
    customer_of,
    is_last_turn,
    order_then_answer,
)

HELD_DELTAS = 8
HELD_AFTER = 4 + HELD_DELTAS  # the headers of the response, and three events before the first text
SHOWN = {"run_started", "tool_call_started", "text_delta", "handed_off", "run_finished", "run_cancelled"}


def held_while_leaving(request: RecordedRequest) -> int | None:
    """Pause the last answer of customers who leave, so that all of them disconnect before its end."""
    return HELD_AFTER if customer_of(request).startswith("leaving") and is_last_turn(request) else None


def held_from_the_beginning(request: RecordedRequest) -> int | None:
    """Pause the last answer after its headers, whether it is streamed or not."""
    return 1 if is_last_turn(request) else NEVER


def after(number: int) -> Callable[[list[Message]], bool]:
    """Disconnect after ``number`` messages."""
    return lambda read: len(read) == number


def has_been_silent(read: list[Message]) -> bool:
    """Disconnect after three heartbeats in a row that follow the last text."""
    kinds = [one.kind for one in read]
    return kinds[-3:] == ["comment"] * 3 and kinds.count("text_delta") == HELD_DELTAS


def text_of(messages: list[Message]) -> str:
    return "".join(message.data["text"] for message in messages if message.kind == "text_delta")


def whole_answer(customer: str) -> str:
    return answer_for(customer, f"['a present for {customer}']")


async def nothing_is_left(service: Service, server: WatchedServer, before: dict[str, Any]) -> None:
    """Wait until the process has its earlier tasks and sockets, and the model server is idle."""
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
async def test_clients_that_disconnect_leave_nothing_behind_and_the_others_get_their_answers(
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
        emitted = Counter((await service.state())["kinds"])
        assert service.stop() != 0
    assert service.errors == ""

    staying = clients - clients // 4
    assert len(got) == staying + 1
    for customer, messages in got.items():
        assert text_of(messages) == whole_answer(customer)
        assert messages[-1] == Message("run_finished", messages[-1].id, {"output": whole_answer(customer)})
    assert emitted["run_started"] == clients + 1
    assert emitted["run_finished"] == staying + 1
    assert emitted["run_cancelled"] == clients // 4
    assert "run_failed" not in emitted

    database = service.folder / "traces.sqlite3"
    assert spans_without_end(database) == 0
    traces = TraceStore(database).traces(limit=None)
    assert len(traces) == clients + 1
    ended = Counter(trace.error for trace in traces)
    assert ended == {None: staying + 1, "CancelledError": clients // 4}


async def test_a_slow_client_slows_its_run_down(serve_with: Serve) -> None:
    pieces = 8_000
    text = "".join(f"{number:015} " for number in range(pieces))  # the model sends 16 letters at a time
    with OfflineServer([text]) as server:
        service = serve_with(server, send_buffer=4096)
        async with SlowClient(service.port) as client:
            await client.read_some(1000)
            emitted = await emitted_at_standstill(service)
            # 64 events wait in the run's own buffer. Those in the buffers of uvicorn (64 KiB) and of the
            # operating system (made small) have been emitted too.
            in_buffers = 120_000 // len(message_of("000000000000000 "))
            assert 64 < emitted < 64 + in_buffers < pieces // 2

            await client.read_rest()
        service.stop()
    messages = list(Messages().feed(client.text))
    assert text_of(messages) == text
    assert messages[-1].data == {"output": text}


async def emitted_at_standstill(service: Service) -> int:
    """Return the number of text deltas emitted, once it has not changed for a while."""
    counts = [0]

    async def is_constant() -> bool:
        counts.append(await service.emitted("text_delta"))
        return len(counts) > 25 and 0 < counts[-25] == counts[-1]

    await until(is_constant)
    return counts[-1]


def message_of(text: str) -> str:
    return f'id: 10\nevent: text_delta\ndata: {{"text": "{text}"}}\n\n'


async def test_open_streams_end_with_the_service_and_are_recorded_completely(serve_with: Serve) -> None:
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
                return await service.emitted("text_delta") >= 10 * HELD_DELTAS

            await until(all_are_held)
            service.terminate()
        assert len(ended) == 10
        assert service.stop() != 0
        assert server.under_way == 0
    database = service.folder / "traces.sqlite3"
    assert spans_without_end(database) == 0
    assert [trace.error for trace in TraceStore(database).traces()] == ["CancelledError"] * 10


async def test_an_answer_that_is_not_streamed(serve_with: Serve) -> None:
    with OfflineServer(order_then_answer) as server:
        service = serve_with(server)
        async with service.client() as client:
            answer = await client.post("/answer", json=QUESTION, headers={"x-customer": "aiko"})
    assert answer.json() == {"output": answer_for("aiko", "['a lamp', 'a rug']")}


async def test_the_connections_are_exported_as_metrics(serve_with: Serve) -> None:
    with OfflineServer(order_then_answer) as server:
        service = serve_with(server)
        async with service.client() as client:
            await client.post("/answer", json=QUESTION, headers={"x-customer": "aiko"})
            metrics = (await client.get("/metrics")).text
        label = f'url="{server.base_url}"'
    assert f"model_connections_active{{{label}}} 0" in metrics
    assert f"model_connections_max{{{label}}} 1000" in metrics
    assert f"model_requests_pending{{{label}}} 0" in metrics


async def test_a_run_is_cancelled_when_its_client_disconnects_before_the_answer(serve_with: Serve) -> None:
    with WatchedServer(order_then_answer, lambda request: 0 if is_last_turn(request) else NEVER) as server:
        service = serve_with(server)
        before = await service.state()
        async with service.client() as client:
            with anyio.move_on_after(SECONDS) as waiting:

                async def leave_when_held() -> None:
                    async def is_held() -> bool:
                        return await service.emitted("model_call_started") == 2

                    await until(is_held)
                    waiting.cancel()

                async with anyio.create_task_group() as both:
                    both.start_soon(leave_when_held)
                    await client.post("/answer", json=QUESTION, headers={"x-customer": "aiko"})
        await nothing_is_left(service, server, before)
        assert await service.emitted("run_cancelled") == 1
        service.stop()
    assert service.errors == ""
    (trace,) = TraceStore(service.folder / "traces.sqlite3").traces()
    assert trace.error == "CancelledError"


async def test_of_a_failed_run_the_client_receives_only_the_code(serve_with: Serve) -> None:
    with OfflineServer(lambda _: Reply("the key sk-very-secret is not known", status=401)) as server:
        service = serve_with(server)
        async with service.client() as client:
            ours = await read_stream(client, "mallory")
            theirs = await read_stream(client, "aiko")
            not_streamed = [
                await client.post("/answer", json=QUESTION, headers={"x-customer": customer})
                for customer in ("mallory", "aiko")
            ]
        service.stop()
    assert [one.kind for one in ours] == [one.kind for one in theirs] == ["run_started", "error"]
    assert ours[-1] == Message("error", None, {"code": "E18"})
    assert theirs[-1] == Message("error", None, {"code": "internal"})
    assert [answer.status_code for answer in not_streamed] == [500, 500]
    assert not_streamed[0].json() == {"code": "E18"}
    assert not_streamed[1].json() == {"code": "internal"}


async def test_a_failed_run_is_one_line_of_the_services_log_and_one_of_the_sdk(serve_with: Serve) -> None:
    with OfflineServer(lambda _: Reply("the key sk-very-secret is not known", status=401)) as server:
        service = serve_with(server)
        async with service.client() as client:
            for _ in range(5):
                await read_stream(client, "aiko")
                await client.post("/answer", json=QUESTION, headers={"x-customer": "aiko"})
        service.stop()
    traces = {trace.trace_id for trace in TraceStore(service.folder / "traces.sqlite3").traces()}
    lines = service.errors.splitlines()
    own = [line for line in lines if line.startswith("run failed: ")]
    assert {line.split()[2] for line in own} == traces
    assert len(own) == len(traces) == 10
    assert all("AuthenticationError" in line for line in own)
    assert len(lines) == 2 * 10


@pytest.mark.parametrize("path", ["/stream", "/answer"])
async def test_a_request_without_a_place_is_answered_with_503_and_starts_no_run(
    serve_with: Serve, path: str
) -> None:
    with WatchedServer(order_then_answer, held_while_leaving) as server:
        service = serve_with(server, runs=2)
        refused: list[httpx.Response] = []

        async def is_refused() -> bool:
            refused.append(await client.post(path, json=QUESTION, headers={"x-customer": "aiko"}))
            return True

        async with service.client() as client:

            async def all_are_held() -> bool:
                return await service.emitted("text_delta") >= 2 * HELD_DELTAS

            async with anyio.create_task_group() as group:
                for number in range(2):
                    group.start_soon(read_stream, client, f"leaving-{number}")
                await until(all_are_held)
                await is_refused()
                assert await service.emitted("run_started") == 2
                group.cancel_scope.cancel()

            async def has_place() -> bool:
                await is_refused()
                return refused[-1].status_code == 200

            await until(has_place)
    assert refused[0].status_code == 503
    assert refused[0].headers["retry-after"] == "5"
    assert refused[0].json() == {"code": "busy"}


@pytest.mark.parametrize("path", ["/stream", "/answer"])
async def test_a_run_that_takes_too_long_ends_with_e82(serve_with: Serve, path: str) -> None:
    with WatchedServer(order_then_answer, held_from_the_beginning) as server:
        service = serve_with(server, constants={"SECONDS": 0.3})
        async with service.client() as client:
            answer = await client.post(path, json=QUESTION, headers={"x-customer": "leaving-1"})

        async def is_idle() -> bool:
            return server.under_way == 0

        await until(is_idle)
    assert '{"code": "E82"}' in answer.text.replace('":"', '": "')


async def test_the_place_of_a_client_that_does_not_read_is_free_in_the_end(serve_with: Serve) -> None:
    text = "".join(f"{number:015} " for number in range(8_000))
    replies = itertools.chain([text], itertools.repeat("Done."))
    with OfflineServer(lambda _: next(replies)) as server:
        service = serve_with(server, send_buffer=4096, runs=1, constants={"SECONDS": 0.5, "FLUSH": 0.1})
        async with SlowClient(service.port) as slow, service.client() as client:
            await slow.read_some(1000)
            answers: list[httpx.Response] = []

            async def has_place() -> bool:
                answers.append(await client.post("/answer", json=QUESTION, headers={"x-customer": "aiko"}))
                return answers[-1].status_code == 200

            await until(has_place)
            kinds = (await service.state())["kinds"]
    assert answers[0].status_code == 503
    # On a busy machine, an answer may also take longer than the time of a run.
    assert kinds["run_finished"] == 1
    assert kinds.get("run_failed", 0) + kinds.get("run_cancelled", 0) == kinds["run_started"] - 1 >= 1


async def test_during_silence_heartbeats_are_sent_and_no_event_is_lost(
    serve_with: Serve,
) -> None:
    with WatchedServer(order_then_answer, held_while_leaving) as server:
        service = serve_with(server, heartbeat=0.05)
        async with service.client() as client:
            messages = await read_stream(client, "leaving-1", has_been_silent)
        observed = await service.events(messages[0].data["run_id"])
        sent = [(one.id, one.kind) for one in messages if one.kind != "comment"]
    assert sent == [event for event in observed if event[1] in SHOWN and event[1] != "run_cancelled"]
    assert len(sent) == 2 + HELD_DELTAS, "run_started, tool_call_started and the text up to the silence"


async def test_the_ids_are_the_sequence_numbers_of_the_events(serve_with: Serve) -> None:
    with OfflineServer(order_then_answer) as server:
        service = serve_with(server)
        async with service.client() as client:
            messages = await read_stream(client, "aiko")
        observed = await service.events(messages[0].data["run_id"])
    assert [sequence for sequence, _ in observed] == list(range(1, len(observed) + 1))
    assert [(one.id, one.kind) for one in messages] == [event for event in observed if event[1] in SHOWN]


async def test_the_response_is_what_the_page_shows(serve_with: Serve) -> None:
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
