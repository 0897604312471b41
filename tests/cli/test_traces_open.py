"""``kantan-agents traces open``: serves the page until a signal, and refuses what is not safe."""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.conftest import Invoke
from tests.cli.recorded_runs import Recorded
from tests.ports import reserved_port
from tests.programs import Preloaded, Program
from tests.traces.store.sample_database import open_sample

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no SIGINT for another process there")

SECRET = "open-sesame-open-sesame"
Open = Callable[..., tuple[Program, str]]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Handle SIGINT, which a child would ignore otherwise."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def opened(start: Any, shop: Recorded, interruptible: None) -> Iterator[Open]:
    """``opened("--port", "4711")`` returns the process and the address that it prints."""
    started: list[Program] = []

    def run(*options: str, env: dict[str, str] | None = None) -> tuple[Program, str]:
        process = start("traces", "open", "--db", str(shop.path), *options, env=env or {})
        started.append(process)
        return process, process.stdout.readline().decode().strip()

    yield run
    for process in started:
        process.kill()
        process.communicate()


def end(process: Program, number: signal.Signals = signal.SIGINT, timeout: float = 120) -> tuple[Any, str]:
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=timeout)
    assert stdout == b""
    return process.returncode, stderr.decode()


@contextmanager
def visitor(address: str) -> Iterator[httpx.Client]:
    """Yield the browser of somebody who has opened the printed address."""
    found = re.fullmatch(r"(http://[^/]+:\d+/)\?token=[\w-]{16,}(#/run/trace_\w+)?", address)
    assert found is not None, address
    with httpx.Client(base_url=found[1], follow_redirects=True) as client:
        assert client.get(address).status_code == 200
        yield client


def test_the_page_is_served_at_the_printed_address_until_ctrl_c(opened: Open) -> None:
    process, address = opened("--no-browser")
    with visitor(address) as client:
        assert "kantan-token" in client.get("/").text
        assert client.get("/api/runs").json()["runs"]
        # The connection is kept open, as a browser does.
        assert end(process) == (130, "Ctrl-C ends it\n")


def test_sigterm_ends_it_without_a_traceback(opened: Open) -> None:
    process, address = opened("--no-browser")
    assert httpx.get(address).status_code == 303
    assert end(process, signal.SIGTERM) == (-signal.SIGTERM, "Ctrl-C ends it\n")


def test_a_request_that_never_ends_does_not_keep_it_running(opened: Open) -> None:
    process, address = opened("--no-browser", "--token", SECRET)
    port = httpx.URL(address).port
    assert port
    with socket.create_connection(("127.0.0.1", port)) as connection:
        head = f"POST /api/labels HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 100\r\n"
        connection.sendall(
            f"{head}Authorization: Bearer {SECRET}\r\nContent-Type: application/json\r\n\r\n{{".encode()
        )
        assert httpx.get(address, follow_redirects=False).status_code == 303
        assert end(process) == (130, "Ctrl-C ends it\n")


def test_a_query_that_goes_on_does_not_keep_it_running(
    preloaded: Preloaded, tmp_path: Path, interruptible: None
) -> None:
    waits = "import kantan_agents.traces.trace_file as file, kantan_agents.cli.app as app\n"
    waits += "file.READ_WAIT_SECONDS = 3600.0\napp.main()"
    with open_sample(tmp_path / "locked.sqlite3") as database:
        database.run("hello")
    with closing(sqlite3.connect(database.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        process = preloaded.popen(["-c", waits, "traces", "open", "--no-browser", "--db", str(database.path)])
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        with visitor(address) as client:
            connection.execute("BEGIN EXCLUSIVE")  # a reader waits an hour for it to end
            with pytest.raises(httpx.ReadTimeout):
                client.get("/api/runs", timeout=0.5)
        try:
            assert end(process) == (130, "Ctrl-C ends it\n")
        finally:
            process.kill()


@pytest.mark.parametrize("name", ["LAST", "the beginning of an id"])
def test_a_run_is_opened(opened: Open, shop: Recorded, name: str) -> None:
    trace_id = next(iter(shop.ids.values()))
    _, address = opened("--no-browser", name if name == "LAST" else trace_id)
    run = address.partition("#/run/")[2]
    assert run == trace_id if name != "LAST" else run.startswith("trace_")


def test_every_start_has_a_token_of_its_own(opened: Open) -> None:
    (_, one), (_, other) = opened("--no-browser"), opened("--no-browser")
    with visitor(one) as client, visitor(other) as another:
        for address in (str(client.base_url), str(another.base_url)):
            assert httpx.get(address).status_code == 401
            assert httpx.get(f"{address}api/runs").status_code == 401
        # Cookies of one host are sent to all of its ports.
        client.cookies = another.cookies
        assert client.get("/api/runs").status_code == 401
        assert another.get("/api/runs").status_code == 200


def test_the_browser_is_opened_with_an_address_that_works_once(opened: Open, tmp_path: Path) -> None:
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}.part\nmv {seen}.part {seen}\n')
    browser.chmod(0o755)
    _, address = opened("LAST", "--token", SECRET, env={"BROWSER": f"{browser} %s"})
    deadline = time.monotonic() + 120
    while not seen.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert f"/?token={SECRET}#/run/trace_" in address
    # Other users of the machine can see the command line of a browser.
    given = seen.read_text()
    assert SECRET not in given
    assert given.partition("#")[2] == address.partition("#")[2] != ""
    with visitor(given) as browsing:
        assert browsing.get("/api/runs").status_code == 200
    assert httpx.get(given).status_code == 401
    assert httpx.get(address).status_code == 303


@pytest.mark.parametrize("browser", ["/does/not/exist", "lynx %s", ""])
def test_without_a_usable_browser_the_address_is_enough(opened: Open, tmp_path: Path, browser: str) -> None:
    # The shell's tools are not found either.
    process, address = opened(env={"BROWSER": browser, "PATH": str(tmp_path), "DISPLAY": ""})
    assert httpx.get(address).status_code == 303
    assert end(process) == (130, "Ctrl-C ends it\n")


def test_the_port_may_be_chosen(opened: Open) -> None:
    port = reserved_port()
    _, address = opened("--no-browser", "--port", str(port))
    assert address.startswith(f"http://127.0.0.1:{port}/?token=")


def test_a_taken_port_is_an_error_that_says_what_to_do(kantan_agents: Invoke, shop: Recorded) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = kantan_agents("traces", "open", "--db", str(shop.path), "--port", str(port))
    assert (outcome.code, outcome.stdout) == (2, "")
    assert outcome.stderr == (
        f"error: [kantan-agents][E75] Invalid option --port: {port} is used by another program; "
        "name another port, or leave the option out for a free one\n"
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("nothing",), "[E61] No such trace: nothing"),
        (("--db", "nothing.sqlite3"), "[E60]"),
        (("--host", "0.0.0.0"), "--host: 0.0.0.0 can be reached from other machines; give --token too"),
        (("--host", "::"), "can be reached from other machines"),
        (("--host", "example.com"), "can be reached from other machines"),
        (("--host", "localhost.example.com"), "can be reached from other machines"),
        (("--host", ""), "can be reached from other machines"),
        (("--token", "fifteen letters"), "--token: must have at least 16 characters, not 15"),
        (("--token", ""), "--token: must have at least 16 characters, not 0"),
        (("--token", "with some spaces"), "--token: must be of ASCII characters without spaces"),
        (("--token", "ääääääääääääääää"), "--token: must be of ASCII characters without spaces"),
        (("--host", "192.0.2.1", "--token", SECRET), "--host: '192.0.2.1' cannot be used"),
        (("--host", "a b", "--token", SECRET), "--host: 'a b' cannot be used"),
        (("--price", "gpt"), "--price: must be MODEL=IN,OUT"),
        (("--price", "gpt=-1,2"), "--price: must be MODEL=IN,OUT, with prices from 0, not 'gpt=-1,2'"),
        (("--price", "gpt=nan,2"), "with prices from 0"),
        (("--port", "65536"), "[usage]"),
        (("--port", "-1"), "[usage]"),
    ],
)
def test_what_cannot_be_served_is_refused_before_the_start(
    kantan_agents: Invoke, shop: Recorded, options: tuple[str, ...], says: str
) -> None:
    outcome = kantan_agents("traces", "open", "--no-browser", "--db", str(shop.path), *options)
    assert (outcome.code, outcome.stdout, outcome.stderr.count("\n")) == (2, "", 1)
    assert says in outcome.stderr
    assert SECRET not in outcome.stderr


def test_with_a_token_every_request_needs_it(opened: Open) -> None:
    process, address = opened("--no-browser", "--token", SECRET)
    base = address.partition("?")[0]
    assert address == f"{base}?token={SECRET}"
    with httpx.Client(base_url=base) as client:
        for path in (
            "/",
            "/api/runs",
            "/static/main.js",
            "/nothing",
            f"/api/runs?token={SECRET}",
            "/?token=x",
        ):
            refused = client.get(path)
            assert refused.status_code == 401
            assert "kantan-token" not in refused.text and SECRET not in str(refused.headers)
            assert "content-security-policy" in refused.headers
        for wrong in ("Bearer x", f"Basic {SECRET}", SECRET, f"Bearer {SECRET}x", "Bearer \xe9"):
            headers = httpx.Headers([("Authorization", wrong)], encoding="latin-1")
            assert client.get("/", headers=headers).status_code == 401
        assert client.get("/", headers={"Authorization": f"Bearer {SECRET}"}).status_code == 200
        assert client.get("/").status_code == 401

        welcome = client.get(f"/?token={SECRET}")
        assert (welcome.status_code, welcome.headers["location"]) == (303, "/")
        name, *attributes = welcome.headers["set-cookie"].split("; ")
        assert set(attributes) == {"HttpOnly", "SameSite=strict", "Path=/"}
        assert SECRET not in name
        assert client.get("/").status_code == 200  # with the cookie
        assert client.get("/api/runs").status_code == 200
        assert client.get(f"/?token={SECRET}&token=x").status_code == 401
    assert end(process) == (130, "Ctrl-C ends it\n")


def test_the_token_may_come_from_the_environment(opened: Open) -> None:
    _, address = opened("--no-browser", env={"KANTAN_AGENTS_PAGE_TOKEN": SECRET})
    assert address.endswith(f"/?token={SECRET}")
    assert httpx.get(address.partition("?")[0]).status_code == 401


def test_with_a_token_other_hosts_may_be_served(opened: Open) -> None:
    _, address = opened("--no-browser", "--token", SECRET, "--host", "0.0.0.0")
    port = httpx.URL(address).port
    headers = {"Authorization": f"Bearer {SECRET}", "Host": "my-machine.example:80"}
    assert httpx.get(f"http://127.0.0.1:{port}/", headers=headers).status_code == 200
    assert httpx.get(f"http://127.0.0.1:{port}/", headers={"Host": "evil.example"}).status_code == 401


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_every_loopback_address_may_be_served(opened: Open, host: str) -> None:
    _, address = opened("--no-browser", "--host", host, "--token", SECRET)
    port = httpx.URL(address).port or 80
    assert address == f"http://{host}:{port}/?token={SECRET}"
    with httpx.Client(
        base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {SECRET}"}
    ) as client:
        for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]", host):
            assert client.get("/", headers={"Host": f"{name}:{port}"}).status_code == 200
        for name in (f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"127.0.0.1.evil:{port}"):
            assert client.get("/", headers={"Host": name}).status_code == 403
