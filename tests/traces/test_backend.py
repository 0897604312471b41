"""A file and a server behind one seam: neither is asked for what only the other one has."""

from __future__ import annotations

import re
from inspect import getmembers, isfunction
from pathlib import Path

import kantan_agents
from kantan_agents.traces.backend import backend_of
from kantan_agents.traces.database_url import as_place
from kantan_agents.traces.file_backend import FileBackend
from kantan_agents.traces.postgres.backend import PostgresBackend


def test_a_server_is_asked_for_nothing_that_only_a_file_has() -> None:
    names = {name for name, _ in getmembers(FileBackend, isfunction)}
    assert names - vars(PostgresBackend).keys() == {"is_to_come"}  # what it asks is overridden


def test_a_place_is_a_file_or_a_url_with_its_password(tmp_path: Path) -> None:
    file, server = backend_of(tmp_path), backend_of(as_place("postgresql://u:secret@h/db"))
    assert (file.file, file.text) == (tmp_path, str(tmp_path))
    assert (server.file, server.text) == (None, "postgresql://u:secret@h/db")


def test_nothing_else_asks_which_database_it_is() -> None:
    package = Path(kantan_agents.__file__).parent
    asking = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"isinstance\(\w+, PostgresUrl\)", path.read_text("utf-8"))
    }
    assert asking == {"traces/backend.py", "traces/database_url.py"}
