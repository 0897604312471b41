"""A file and a server behind one seam: neither is asked for what only the other one has."""

from __future__ import annotations

import re
from inspect import getmembers, isfunction
from pathlib import Path

import kantan_agents
from kantan_agents.traces.backend import Backend, PostgresBackend, backend_of
from kantan_agents.traces.database_url import as_place

ASKING = re.compile(r"url_of\(|is_server\(|isinstance\(\w+, PostgresUrl\)")
# They choose between two modules of their own.
CHOOSING = {"backend", "copying.target", "database_url", "store.find", "store.prune", "store.search_service"}


def test_a_server_is_asked_for_nothing_that_only_a_file_has() -> None:
    names = {name for name, _ in getmembers(Backend, isfunction)}
    assert names - vars(PostgresBackend).keys() == {"is_to_come"}  # what it asks is overridden


def test_a_place_is_a_file_or_a_url_with_its_password(tmp_path: Path) -> None:
    file, server = backend_of(tmp_path), backend_of(as_place("postgresql://u:secret@h/db"))
    assert (file.file, file.text) == (tmp_path, str(tmp_path))
    assert (server.file, server.text) == (None, "postgresql://u:secret@h/db")


def test_nothing_else_asks_which_database_it_is() -> None:
    package = Path(kantan_agents.__file__).parent
    asking = {
        ".".join(path.relative_to(package / "traces").with_suffix("").parts)
        for path in package.rglob("*.py")
        if ASKING.search(path.read_text("utf-8"))
    }
    assert asking == CHOOSING
