"""Requests that no client library sends, and pages that try what browsers let them try."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from playwright.sync_api import BrowserContext, Page, expect
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient
from starlette.types import ASGIApp
from starlette.websockets import WebSocketDisconnect

from kantan_agents import TraceStore
from kantan_agents.page import traces_app
from kantan_agents.page.guard import HEADERS
from kantan_agents.page.listening import ListeningPlace
from kantan_agents.page.serve import local_app
from kantan_agents.page.state import PageState
from tests.page.served import served
from tests.traces.store.sample_database import open_sample

SECRET = "a secret question"
TOKEN = "a-token-of-32-characters-12345678"
BASE = "http://127.0.0.1:4711"
LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    with open_sample(tmp_path_factory.mktemp("secret") / "traces.sqlite3") as database:
        database.run(SECRET)
        yield TraceStore(database.path)


@pytest.fixture
def local(store: TraceStore) -> Iterator[Starlette]:
    """The page as ``traces open`` serves it on port 4711, whatever port it is really on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield local_app(PageState(store), ListeningPlace(listener, "127.0.0.1", 4711), TOKEN)


def sent(address: str, *lines: str) -> str:
    """Send the lines of a request as they are, by somebody who has the token; return the whole answer."""
    port = int(address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(
            "\r\n".join((*lines, f"Authorization: Bearer {TOKEN}", "Connection: close", "", "")).encode(
                "latin-1"
            )
        )
        parts = iter(lambda: connection.recv(65_536), b"")
        return b"".join(parts).decode("latin-1")


HOST = "Host: 127.0.0.1:4711"


@pytest.mark.parametrize(
    "lines",
    [
        ("GET /api/runs HTTP/1.1", "Host: evil.example", HOST),
        ("GET /api/runs HTTP/1.1", HOST, "Host: evil.example"),
        ("GET /api/runs HTTP/1.0",),
        ("GET /api/runs HTTP/1.1", "Host: 127.0.0.1:4711@evil.example"),
        ("GET /api/runs HTTP/1.1", "Host: 127.0.0.1:4711.evil.example"),
        ("GET /api/runs HTTP/1.1", "Host: 127.0.0.1:4711, evil.example"),
        ("GET /api/runs HTTP/1.1", HOST, "Origin: http://127.0.0.1:4711", "Origin: http://evil.example"),
        ("GET /api/runs HTTP/1.1", HOST, "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"),
        ("GET /api/runs HTTP/1.1", HOST, "Origin: http://["),
        ("GET /api/runs HTTP/1.1", HOST, "Origin: http://127.0.0.1:4711.evil.example"),
        ("GET /api/runs HTTP/1.1", HOST, "Origin: http://127.0.0.1:4711@evil.example"),
        ("GET /api/runs HTTP/1.1", HOST, "Origin: file://"),
        ("GET /api/runs HTTP/1.1", HOST, "Origin: "),
        ("GET http://evil.example/api/runs HTTP/1.1", "Host: evil.example"),
        ("GET / HTTP/1.1", HOST, *(f"{name}: {value}" for name, value in LINK.items())),
    ],
    ids=lambda lines: " ".join(lines)[:90],
)
def test_a_request_that_is_not_clearly_of_the_page_is_refused(
    local: Starlette, lines: tuple[str, ...]
) -> None:
    with served(local) as address:
        answer = sent(address, *lines)
        assert answer.startswith(("HTTP/1.1 403", "HTTP/1.1 400"))
        assert SECRET not in answer and "kantan-token" not in answer
        assert SECRET in sent(address, "GET /api/runs HTTP/1.1", HOST)


@pytest.mark.parametrize("length", [5_000, 60_000, 1_000_000])
def test_a_very_long_address_does_no_harm(local: Starlette, length: int) -> None:
    with served(local) as address:
        for path in (
            f"/{'a' * length}",
            f"/static/{'../' * (length // 3)}etc/passwd",
            f"/api/runs?words={'a' * length}",
        ):
            try:
                answer = sent(address, f"GET {path} HTTP/1.1", HOST)
            except ConnectionError:
                answer = ""  # the server has closed the connection before the address was complete
            assert "HTTP/1.1 500" not in answer and "root:" not in answer
        assert SECRET in sent(address, "GET /api/runs HTTP/1.1", HOST)


@pytest.mark.parametrize("path", ["//evil.example/..", "//evil.example/static", "/api", "/static"])
def test_a_redirect_leads_nowhere_else_and_has_the_headers(local: Starlette, path: str) -> None:
    with served(local) as address:
        answer = sent(address, f"GET {path} HTTP/1.1", HOST)
    location = [line for line in answer.lower().splitlines() if line.startswith("location:")]
    assert all(line.startswith("location: http://127.0.0.1:4711/") for line in location)
    assert all(f"{name}: {value}".lower() in answer.lower() for name, value in HEADERS.items())


def test_a_failure_is_logged_and_has_the_headers_too(
    store: TraceStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr(TraceStore, "path", property(broken), raising=False)
    with TestClient(traces_app(store), base_url=BASE, raise_server_exceptions=False) as client:
        answer = client.get("/api/labels")
    assert (answer.status_code, answer.text) == (500, "the page has failed: ZeroDivisionError")
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert [record.levelno for record in caplog.records if record.name == "kantan_agents.page"] == [
        logging.ERROR
    ]


@pytest.mark.parametrize("headers", [{}, {"origin": BASE}])
def test_a_websocket_is_closed(store: TraceStore, headers: dict[str, str]) -> None:
    client = TestClient(traces_app(store), base_url=BASE)
    for path in ("/", "/api/runs"):
        with pytest.raises(WebSocketDisconnect), client.websocket_connect(path, headers=headers):
            pass


def test_a_link_of_another_site_leads_to_a_mounted_page_and_to_nothing_else(store: TraceStore) -> None:
    service = Starlette(routes=[Mount("/traces", traces_app(store))])
    client = TestClient(service, base_url=BASE)
    assert client.get("/traces/", headers=LINK).status_code == 200
    refused = [
        ("GET", "/traces/api/runs", {}),
        ("GET", "/traces/static/main.js", {}),
        ("POST", "/traces/", {}),
        ("GET", "/traces/", {"sec-fetch-dest": "iframe"}),
        ("GET", "/traces/", {"sec-fetch-dest": "object"}),
        ("GET", "/traces/", {"sec-fetch-mode": "no-cors"}),
        ("GET", "/traces/", {"origin": "http://evil.example"}),
    ]
    for method, path, change in refused:
        assert client.request(method, path, headers=LINK | change).status_code == 403


def test_authorize_decides_about_links_too(store: TraceStore) -> None:
    client = TestClient(traces_app(store, authorize=lambda _: False), base_url=BASE)
    answer = client.get("/", headers=LINK)
    assert (answer.status_code, "kantan-token" in answer.text) == (403, False)


ATTACK = """<!DOCTYPE html><title>other</title>
<iframe name=target src="{ours}/"></iframe>
<form id=plain method=post action="{ours}/api/labels" target=target enctype="text/plain">
<input name='{{"evaluation":"x","a":"' value='"}}'></form>
<form id=form method=post action="{ours}/api/labels/undo" target=target><input name=a value=b></form>
<script>
window.results = [];
window.onerror = (message) => results.push("script: " + message);
for (const path of ["/api/runs", "/", "/static/main.js", "/api/labels"]) {{
  const script = document.createElement("script");
  script.onload = () => results.push("loaded " + path);
  script.onerror = () => results.push("blocked");
  script.src = "{ours}" + path;
  document.head.append(script);
  const image = new Image();
  image.onload = () => results.push("image " + path);
  image.onerror = () => results.push("blocked");
  image.src = "{ours}" + path;
}}
const image = new Image();
image.onload = () => results.push("image");
image.onerror = () => results.push("blocked");
image.src = "{ours}/static/icon.svg";
document.getElementById("plain").submit();
document.getElementById("form").submit();
for (const headers of [{{}}, {{"Content-Type": "text/plain"}}, {{"X-Kantan-Token": "x"}}])
  fetch("{ours}/api/labels",
    {{method: "POST", mode: headers["X-Kantan-Token"] ? "cors" : "no-cors", headers, body: "{{}}"}})
    .then((answer) => results.push("answer " + answer.type), () => results.push("blocked"));
</script>"""


READ_THE_OPENED = """() => {
  try {
    return opened.document.body.innerText;
  } catch {
    return "blocked";
  }
}"""


def test_forms_scripts_frames_and_windows_of_another_site_get_nothing(
    store: TraceStore, window: BrowserContext
) -> None:
    changed: list[tuple[str, int]] = []

    def note(app: ASGIApp) -> ASGIApp:
        async def noted(scope: Any, receive: Any, send: Any) -> None:
            async def watched(message: Any) -> None:
                if message["type"] == "http.response.start":
                    changed.append((scope["method"], message["status"]))
                await send(message)

            await app(scope, receive, watched)

        return noted

    with served(Starlette(routes=[Mount("/", traces_app(store))], middleware=[Middleware(note)])) as ours:

        async def other(_: Request) -> HTMLResponse:
            return HTMLResponse(ATTACK.format(ours=ours))

        with served(Starlette(routes=[Route("/", other)])) as theirs:
            # The reader has the page open in the same browser.
            mine = window.new_page()
            mine.goto(ours)
            changed.clear()
            page = window.new_page()
            page.goto(theirs)
            page.wait_for_function("results.length >= 12")
            page.wait_for_load_state("networkidle")
            results = page.evaluate("results")
            # An opaque answer is of a request without CORS: nothing in it can be read.
            assert set(results) <= {"blocked", "answer opaque"}, results
            with page.expect_popup() as popup:
                page.evaluate(f"window.opened = window.open('{ours}/')")
            popup.value.wait_for_load_state()
            assert page.evaluate(READ_THE_OPENED) in ("blocked", "")
    assert {status for method, status in changed if method == "POST"} == {403}
    assert {method for method, _ in changed} >= {"GET", "POST"}


@pytest.mark.parametrize("kind", ["starlette", "fastapi", "root_path", "fastapi_root_path"])
def test_a_mounted_page_changes_labels_and_follows_its_own_addresses(
    tmp_path: Path, page: Page, kind: str
) -> None:
    with open_sample(tmp_path / "traces.sqlite3") as database:
        database.run(SECRET)
        mounted = traces_app(database.path)
        service: ASGIApp = Starlette(routes=[Mount("/traces", mounted)])
        if kind.startswith("fastapi"):
            service = _fastapi(mounted)
        if "root_path" in kind:
            service = _behind("/ops", service)
        prefix = "/ops/traces" if "root_path" in kind else "/traces"
        failed: list[str] = []
        page.on("response", lambda answer: failed.append(answer.url) if answer.status >= 400 else None)
        with served(service) as address:
            page.goto(f"{address}{prefix}/")
            expect(page.locator("main")).to_contain_text(SECRET)
            asked = page.evaluate(
                """() => import("./static/lib/api.js").then((api) => api.post("labels/next",
                {evaluation: "x", metric: "m", by: "b"}).catch((error) => error.code))"""
            )
            assert asked == "E104"  # it got past the guard and the token
    assert [url for url in failed if not url.endswith("/api/labels/next")] == []


def _fastapi(mounted: ASGIApp) -> FastAPI:
    app = FastAPI()
    app.mount("/traces", mounted)
    return app


def _behind(prefix: str, app: ASGIApp) -> ASGIApp:
    """Return what a client of a proxy sees that serves an application below a path."""

    async def proxied(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            assert scope["path"].startswith(prefix)
            scope = {**scope, "root_path": prefix}
        await app(scope, receive, send)

    return proxied
