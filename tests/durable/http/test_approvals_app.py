"""The HTTP routes of durable runs, served by uvicorn to a real client, with a real worker behind them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.testclient import TestClient

from kantan_agents.durable import DurableRuns, approvals_app
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing import OfflineServer
from tests.cli.durable_shop import HOSTILE, Shop, answer
from tests.programs import Preloaded

TOKEN = "a-token-of-24-characters"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def shop(tmp_path: Path, preloaded: Preloaded) -> Iterator[Shop]:
    """Durable agents, their model and a new database."""
    with OfflineServer(answer) as server:
        yield Shop(tmp_path, server, preloaded)


@contextmanager
def served(database: str, token: str | None = TOKEN) -> Iterator[httpx.Client]:
    """Serve the routes on 127.0.0.1, and yield a client for them."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = approvals_app(DurableRuns(database), token=token)
    config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=60) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def events_of(lines: Iterator[str]) -> Iterator[tuple[str | None, str, Any]]:
    """Yield id, type and data of server-sent events."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield fields.get("id"), fields.get("event", "message"), json.loads(fields["data"])
            fields = {}


def test_an_answer_lets_the_run_go_on(shop: Shop) -> None:
    run_id = shop.enqueue("asks", "hostile")
    with shop.worker(), served(shop.database) as client:
        shop.wait_for(run_id, "waiting")
        (call,) = client.get("/approvals", headers=HEADERS).json()["approvals"]
        assert (call["run_id"], call["call_id"], json.loads(call["arguments"])["to"]) == (
            run_id,
            "c/1",
            HOSTILE,
        )
        path = f"/approvals/{run_id}/{call['call_id']}"
        half = {"answer": "reject", "by": "Mia", "arguments": {"amount": 1}}
        bodies: list[Any] = [
            {"answer": "yes", "by": "Mia"},
            {"answer": "approve"},
            half,
            [],
            {"answer": 1, "x": 2},
        ]
        for body in bodies:
            refused = client.post(path, headers=HEADERS, json=body)
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "E75"), body
        body = {"answer": "approve", "by": "Mia", "arguments": {"amount": 7}}
        answered = client.post(path, headers=HEADERS, json=body)
        assert (answered.status_code, answered.json()["answered_by"]) == (200, "Mia")
        again = client.post(path, headers=HEADERS, json=body)
        assert (again.status_code, again.json()["error"]["code"]) == (409, "E158")
        outcome = shop.ask(lambda runs: runs.result(run_id, timeout=60))
        shown = client.get(f"/runs/{run_id}", headers=HEADERS).json()
        assert (shown["status"], shown["next_run"]) == ("finished", outcome.run_id)
        assert client.get("/approvals", headers=HEADERS).json() == {"approvals": []}
        assert len(client.get("/approvals?all=1", headers=HEADERS).json()["approvals"]) == 1
    assert shop.effects == ["pay 7"]


def test_an_event_source_that_connects_again_misses_nothing(shop: Shop) -> None:
    run_id = shop.enqueue("looks", "look")
    path = f"/runs/{run_id}/events"
    with shop.worker("--keep-events"), served(shop.database) as client:
        seen = []
        with client.stream("GET", path, headers=HEADERS) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            for one in events_of(response.iter_lines()):
                seen.append(one)
                if one[2]["type"] == "tool_call_started":
                    break  # the connection is lost while the tool works
        (shop.folder / "go").touch()
        again = {**HEADERS, "Last-Event-ID": str(seen[-1][0])}
        with client.stream("GET", path, headers=again) as response:
            seen += events_of(response.iter_lines())
        assert seen.pop() == (
            None,
            "end",
            {"run_id": run_id, "status": "finished", "next_run": None},
        )
        assert [int(one[0] or 0) for one in seen] == list(range(1, len(seen) + 1))
        assert seen[-1][2]["type"] == "run_finished"
        with client.stream("GET", f"{path}?after=2", headers=HEADERS) as response:
            assert list(events_of(response.iter_lines()))[:-1] == seen[2:]
        ended = client.get(path, headers={**HEADERS, "Last-Event-ID": str(len(seen))})
        assert (ended.status_code, ended.content) == (204, b"")
        wrong = client.get(f"{path}?after=-1", headers=HEADERS)
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "E75")


@pytest.mark.parametrize(
    "authorization",
    [
        [],
        ["Bearer"],
        [f"Basic {TOKEN}"],
        [f"Bearer {TOKEN}x"],
        [f"Bearer {TOKEN}"] * 2,
        ["Bearer é"],
    ],
)
def test_nobody_gets_in_without_the_token(shop: Shop, authorization: list[str]) -> None:
    with served(shop.database) as client:
        headers = [(b"Authorization", one.encode("latin-1")) for one in authorization]
        for method, path in (("GET", "/approvals"), ("POST", "/approvals/r/c"), ("GET", "/runs/r/events")):
            refused = client.request(method, path, headers=headers)
            assert refused.status_code == 401
            assert refused.json()["error"]["code"] == "unauthorized"


def test_requests_of_other_sites_are_refused_also_without_a_token(shop: Shop) -> None:
    with served(shop.database, token=None) as client:
        own = f"{client.base_url.scheme}://{client.base_url.host}:{client.base_url.port}"
        assert client.get("/approvals", headers={"Origin": own}).status_code == 200
        for headers in (
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
        ):
            refused = client.post("/approvals/r/c", headers=headers, json={"answer": "approve", "by": "x"})
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "other_site")
        form = client.post("/approvals/r/c", content="{}", headers={"Content-Type": "text/plain"})
        assert (form.status_code, form.json()["error"]["code"]) == (415, "media_type")
        large = client.post("/approvals/r/c", json={"answer": "approve", "by": "x" * 1_000_001})
        assert large.status_code == 413


@pytest.mark.parametrize(
    ("options", "host", "status"),
    [
        ({"token": None}, "127.0.0.1:8000", 200),
        ({"token": None}, "evil.example:8000", 403),
        ({"token": None, "hosts": ["ops.example"]}, "ops.example", 200),
        ({"token": None, "hosts": ["ops.example"]}, "127.0.0.1:8000", 403),
        ({"token": TOKEN}, "ops.example", 200),
        ({"token": TOKEN, "hosts": ["ops.example"]}, "evil.example", 403),
    ],
)
def test_the_routes_are_there_under_their_names_only(
    shop: Shop, options: dict[str, Any], host: str, status: int
) -> None:
    headers = {**HEADERS, "host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
    with TestClient(approvals_app(DurableRuns(shop.database), **options)) as client:
        answer = client.get("/approvals", headers=headers)
    assert answer.status_code == status
    assert status == 200 or answer.json()["error"]["code"] == "other_host"


def test_errors_are_json(shop: Shop) -> None:
    with served(shop.database) as client:
        for path, status, code in (
            ("/runs/missing", 404, "E154"),
            ("/runs/missing/events", 404, "E154"),
            ("/nowhere", 404, "not_found"),
            ("/approvals/r/c", 405, "method_not_allowed"),
        ):
            answered = client.get(path, headers=HEADERS)
            assert (answered.status_code, answered.json()["error"]["code"]) == (status, code)
            assert answered.headers["x-content-type-options"] == "nosniff"
        unknown = client.post("/approvals/r/c", headers=HEADERS, json={"answer": "approve", "by": "x"})
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (409, "E158")


@pytest.mark.parametrize("token", ["short", "with a space and more", "", 3])
def test_a_token_must_be_hard_to_guess(shop: Shop, token: Any) -> None:
    with pytest.raises(InvalidOptionError, match="token") as raised:
        approvals_app(DurableRuns(shop.database), token=token)
    assert "with a space" not in str(raised.value)
    with pytest.raises(InvalidOptionError, match="runs"):
        approvals_app(shop, token=None)  # type: ignore[arg-type]


def test_the_package_is_imported_without_starlette() -> None:
    code = (
        "import sys, kantan_agents.durable as durable; "
        "assert 'kantan_agents.durable.http' not in sys.modules; durable.approvals_app"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
