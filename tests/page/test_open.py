"""``kantan-agents traces open`` as a process: the address it prints, and how it ends."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.tracing.store.sample_database import open_sample

TOKEN = "a-token-of-32-characters-12345678"


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    with open_sample(tmp_path / "t.db") as database:
        database.run("hello")
        yield database.path


def command(path: Path, *arguments: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "kantan_agents",
        "traces",
        "open",
        "--no-browser",
        "--db",
        str(path),
        *arguments,
    ]


@contextmanager
def opened(path: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the command; yield its process and the address that it prints."""
    process = subprocess.Popen(
        command(path, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal_ends_it(path: Path, ending: signal.Signals) -> None:
    with opened(path) as (process, address):
        assert address.startswith("http://127.0.0.1:")
        assert httpx.get(f"{address}api/runs", trust_env=False).json()["runs"][0]["input"] == "hello"
        begun = time.monotonic()
        process.send_signal(ending)
        _, errors = process.communicate(timeout=10)
        assert time.monotonic() - begun < 5
        assert "Traceback" not in errors
        assert process.returncode in {130, 143, -ending}


def test_it_opens_at_a_run(path: Path) -> None:
    with opened(path, "LAST") as (_, address):
        assert "/#/run/trace_" in address


def test_other_names_of_the_machine_are_refused(path: Path) -> None:
    with opened(path) as (_, address):
        answer = httpx.get(f"{address}api/runs", headers={"host": "evil.example"}, trust_env=False)
        assert answer.status_code == 403


def test_another_host_needs_a_token(path: Path) -> None:
    with opened(path, "--host", "0.0.0.0", "--token", TOKEN) as (_, address):
        port = httpx.URL(address).port
        base = f"http://127.0.0.1:{port}"
        assert httpx.get(f"{base}/api/runs", trust_env=False).status_code == 401
        allowed = httpx.get(f"{base}/api/runs", headers={"authorization": f"Bearer {TOKEN}"}, trust_env=False)
        assert allowed.status_code == 200


def failure(path: Path, *arguments: str) -> str:
    result = subprocess.run(
        command(path, *arguments), capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 2 and result.stdout == "" and "Traceback" not in result.stderr
    return result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "give --token too"),
        (["--host", "0.0.0.0", "--token", "short"], "at least 16 characters"),
        (["--host", "no.such.host.invalid", "--token", TOKEN], "is not an address of this machine"),
        (["nothing"], "E61"),
    ],
)
def test_what_is_wrong_is_said_at_once(path: Path, arguments: list[str], message: str) -> None:
    assert message in failure(path, *arguments)


def test_a_port_that_is_taken_is_said(path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "is used by another program" in failure(path, "--port", str(taken.getsockname()[1]))


def test_a_missing_database_is_said(tmp_path: Path) -> None:
    assert "E60" in failure(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []
