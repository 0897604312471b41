"""The server of the tests themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.postgres_server import execute, own_server


def test_each_test_gets_an_empty_database_of_its_own(postgres_url: str) -> None:
    execute(postgres_url, "CREATE TABLE mine(a int)")
    assert execute(postgres_url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(1,)]


def test_the_server_ends_with_a_process_that_was_killed(tmp_path: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from tests.postgres_server import execute, shared_server
with shared_server(Path({str(tmp_path)!r})) as url:
    print(execute(url, "SHOW data_directory")[0][0], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    data = Path(ended.stdout.strip())
    deadline = time.monotonic() + 120
    while data.parent.exists() and time.monotonic() < deadline:
        os.sched_yield()
    assert not data.parent.exists()


def test_a_server_of_its_own_can_be_stopped_and_started_again() -> None:
    with own_server() as server:
        execute(server.url, "CREATE TABLE kept(a int)")
        server.stop()
        server.start()
        assert execute(server.url, "SELECT count(*) FROM kept") == [(0,)]
