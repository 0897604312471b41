"""What other sites, other names of this machine and people without a token get: nothing."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from kantan_agents import TraceStore
from kantan_agents.errors import InvalidOptionError
from kantan_agents.page import traces_app
from kantan_agents.page.guard import HEADERS
from kantan_agents.page.listening import ListeningPlace, listen
from kantan_agents.page.serve import local_app
from kantan_agents.page.state import PageState
from tests.page.served import served
from tests.traces.store.sample_database import open_sample

TOKEN = "a-token-of-32-characters-12345678"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    with open_sample(tmp_path_factory.mktemp("secret") / "traces.sqlite3") as database:
        database.run("a secret question")
        yield TraceStore(database.path)


@pytest.fixture
def client(store: TraceStore) -> Iterator[TestClient]:
    """The page as ``traces open`` serves it on port 4711, asked by somebody who has the token."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = ListeningPlace(listener, "127.0.0.1", 4711)  # clients name this port; nobody listens on it
        app = local_app(PageState(store), place, TOKEN)
        headers = {"authorization": f"Bearer {TOKEN}"}
        with TestClient(app, base_url="http://127.0.0.1:4711", headers=headers) as client:
            yield client


PATHS = [
    "/",
    "/api/runs",
    "/api/nothing",
    "/static/main.js",
    "/static/../app.py",
    "/nothing",
    "/api/run/none",
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "TRACE", "DELETE"])
def test_every_response_forbids_what_nobody_needs(client: TestClient, method: str, path: str) -> None:
    answer = client.request(method, path)
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert answer.status_code < 500


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1:4712"},
        {"host": "127.0.0.1"},
        {"host": ""},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:4712"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/runs", "/static/main.js"])
def test_a_request_of_another_site_or_name_is_refused(
    client: TestClient, path: str, headers: dict[str, str]
) -> None:
    answer = client.get(path, headers=headers)
    assert answer.status_code == 403
    assert "secret" not in answer.text and "kantan-token" not in answer.text


@pytest.mark.parametrize("headers", [{}, {"host": "localhost:4711"}, {"sec-fetch-site": "same-origin"}])
def test_a_request_of_the_page_itself_is_answered(client: TestClient, headers: dict[str, str]) -> None:
    assert client.get("/api/runs", headers=headers).json()["runs"][0]["input"] == "a secret question"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../state.py",
        "/static/%2e%2e/state.py",
        "/static/..%2fstate.py",
        "/static/%2e%2e%2f%2e%2e%2fpyproject.toml",
        "/static//etc/passwd",
        "/static/",
        "/static",
    ],
)
def test_nothing_but_the_pages_own_files_is_served(store: TraceStore, path: str) -> None:
    with served(traces_app(store)) as address:
        # As it is: httpx would resolve the dots itself.
        url = httpx.URL(address).copy_with(raw_path=path.encode())
        answer = httpx.get(url, trust_env=False)
    assert answer.status_code in {403, 404, 307}
    assert "PageState" not in answer.text and "root:" not in answer.text


@pytest.mark.parametrize("token", [None, "", "wrong"])
def test_a_change_needs_the_token_of_the_opened_page(client: TestClient, token: str | None) -> None:
    headers = {} if token is None else {"X-Kantan-Token": token}
    answer = client.post("/api/labels", json={}, headers=headers)
    assert answer.status_code == 403


ANY = lambda _: True


@pytest.mark.parametrize(
    ("options", "host", "is_accepted"),
    [
        ({}, "127.0.0.1:8000", True),
        ({}, "localhost", True),
        ({}, "LOCALHOST:8000", True),
        ({}, "[::1]:8000", True),
        ({}, "127.8.9.10", True),
        ({}, "evil.example:8000", False),
        ({}, "127.0.0.1.evil.example", False),
        ({}, "localhost.evil.example:8000", False),
        ({}, "127.0.0.1:8000@evil.example", False),
        ({}, "127.0.0.1, evil.example", False),
        ({}, "127.0.0.1:", False),
        ({}, "192.168.0.7:8000", False),
        ({}, "0.0.0.0:8000", False),
        ({}, "testserver", False),
        ({}, "", False),
        ({"authorize": ANY}, "ops.example", True),
        ({"authorize": ANY, "hosts": ["ops.example"]}, "evil.example", False),
        ({"hosts": ["ops.example"]}, "ops.example", True),
        ({"hosts": ["Ops.Example"]}, "OPS.example:8443", True),
        ({"hosts": ["ops.example"]}, "127.0.0.1", False),
        ({"hosts": ["ops.example:8443"]}, "ops.example:8443", True),
        ({"hosts": ["ops.example:8443"]}, "ops.example:8444", False),
        ({"hosts": ("ops.example", "[fd00::7]")}, "[fd00::7]:80", True),
    ],
)
def test_a_mounted_page_is_there_under_its_names_only(
    store: TraceStore, options: dict[str, Any], host: str, is_accepted: bool
) -> None:
    headers = {"host": host, "sec-fetch-site": "same-origin", "origin": f"http://{host}"}
    with TestClient(traces_app(store, **options)) as client:
        for path in ("/", "/api/runs", "/static/main.js"):
            answer = client.get(path, headers=headers)
            assert answer.status_code == (200 if is_accepted else 403)
            assert is_accepted or "secret" not in answer.text


@pytest.mark.parametrize("hosts", ["ops.example", [], [""], ["http://ops.example"], ["a b"], ["::1"], [7], 7])
def test_names_must_be_as_in_the_header(store: TraceStore, hosts: Any) -> None:
    with pytest.raises(InvalidOptionError, match="hosts"):
        traces_app(store, hosts=hosts)


@pytest.mark.parametrize("allowed", [False, None, 1, "yes", "raise"])
def test_whoever_is_not_clearly_authorized_is_refused(store: TraceStore, allowed: Any) -> None:
    def authorize(_request: Any) -> Any:
        if allowed == "raise":
            raise RuntimeError("no session")
        return allowed

    with TestClient(traces_app(store, authorize=authorize)) as client:
        for path in ("/", "/api/runs", "/static/main.js"):
            assert client.get(path).status_code == 403


def test_authorize_may_be_async(store: TraceStore) -> None:
    async def authorize(request: Any) -> bool:
        return bool(request.headers.get("x-user") == "aiko")

    with TestClient(traces_app(store, authorize=authorize)) as client:
        assert client.get("/api/runs").status_code == 403
        assert client.get("/api/runs", headers={"x-user": "aiko"}).status_code == 200


def test_with_a_token_every_request_needs_it(store: TraceStore) -> None:
    place = listen("127.0.0.1", 0)
    with place.listener:
        base = f"http://127.0.0.1:{place.port}"
        with TestClient(
            local_app(PageState(store), place, TOKEN), base_url=base, follow_redirects=False
        ) as client:
            for path in ("/", "/api/runs", "/static/main.js", "/?token=wrong", "/api/runs?token=" + TOKEN):
                assert client.get(path).status_code == 401
            assert client.get("/api/runs", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
            opened = client.get(f"/?token={TOKEN}")
            assert (opened.status_code, opened.headers["location"]) == (303, "/")
            cookie = opened.headers["set-cookie"].lower()
            assert "httponly" in cookie and "samesite=strict" in cookie and TOKEN not in cookie
            assert client.get("/api/runs").status_code == 200


def test_a_ticket_lets_in_once(store: TraceStore) -> None:
    place, ticket = listen("127.0.0.1", 0), "a-ticket-of-24-characters"
    with place.listener:
        base = f"http://127.0.0.1:{place.port}"
        app = local_app(PageState(store), place, TOKEN, ticket)

        def visitor() -> TestClient:
            return TestClient(app, base_url=base, follow_redirects=False)

        first, second = visitor(), visitor()
        assert first.get("/api/runs", headers={"authorization": f"Bearer {ticket}"}).status_code == 401
        assert first.head(f"/?token={ticket}").status_code == 401  # only looks whether there is something
        assert first.get(f"/?token={ticket}").status_code == 303
        late = second.get(f"/?token={ticket}")
        assert (late.status_code, "somebody else has opened the page" in late.text) == (401, True)
        assert "somebody else" not in second.get("/?token=another").text
        assert first.get("/api/runs").status_code == 200
        assert second.get("/api/runs").status_code == 401
        assert second.get(f"/?token={TOKEN}").status_code == 303
        assert second.get("/api/runs").status_code == 200


def test_processes_with_one_secret_accept_each_others_windows(store: TraceStore) -> None:
    secret = "a-secret-of-all-workers"
    apps = traces_app(store, secret=secret), traces_app(store, secret=secret), traces_app(store)
    opened, other, foreign = (TestClient(app, base_url="http://127.0.0.1") for app in apps)
    found = re.search(r'content="([0-9a-f]{64})"', opened.get("/").text)
    assert found is not None
    headers = {"X-Kantan-Token": found[1]}
    answers = [client.post("/api/labels", json={}, headers=headers) for client in (opened, other, foreign)]
    # Past the token, the body is what is wrong.
    assert [answer.status_code for answer in answers] == [400, 400, 403]
    assert secret not in opened.get("/").text and secret not in repr(apps[0].state.page)


@pytest.mark.parametrize("secret", ["fifteen letters", b"a-secret-of-all-workers", ""])
def test_a_secret_that_can_be_guessed_is_refused_and_not_repeated(store: TraceStore, secret: Any) -> None:
    with pytest.raises(InvalidOptionError, match="secret") as caught:
        traces_app(store, secret=secret)
    assert not secret or str(secret) not in str(caught.value)


def test_a_page_of_another_site_reads_and_changes_nothing(store: TraceStore, page: Page) -> None:
    with served(traces_app(store)) as ours:
        attack = f"""<!DOCTYPE html><title>other</title><script type="module">
        const results = [];
        for (const [path, options] of [["/api/runs", {{}}], ["/", {{}}], ["/api/runs", {{mode: "no-cors"}}],
            ["/api/labels", {{method: "POST", body: "{{}}", headers: {{"X-Kantan-Token": "x"}}}}]]) {{
          try {{ results.push(await (await fetch("{ours}" + path, options)).text()); }}
          catch (error) {{ results.push("blocked"); }}
        }}
        window.results = results;
        </script><iframe src="{ours}/"></iframe><img src="{ours}/static/icon.svg">"""

        async def other(_request: Any) -> HTMLResponse:
            return HTMLResponse(attack)

        page.goto("about:blank")
        with served(Starlette(routes=[Route("/", other)])) as theirs:
            other_page = page.context.new_page()
            other_page.goto(theirs)
            other_page.wait_for_function("window.results !== undefined")
            assert other_page.evaluate("window.results") == ["blocked"] * 4
            assert all("secret" not in frame.content() for frame in other_page.frames)
            other_page.close()


def test_the_page_itself_asks_nobody_else(store: TraceStore, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with served(traces_app(store)) as address:
        page.goto(address)
        page.get_by_role("link", name="Label").click()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.get_by_role("link", name="Runs").click()
        page.locator("table.runs tbody a").first.click()
        page.get_by_role("treeitem").first.click()
    assert len(asked) > 10
    assert [url for url in asked if not url.startswith(f"{address}/")] == []
