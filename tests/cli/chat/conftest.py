"""Fixtures that lead chats on real terminals, with an ``OfflineServer`` as the model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.cli.chat.conversations import Conversations
from kantan_agents.testing import OfflineServer
from tests.cli.chat.shop import shop  # noqa: F401
from tests.cli.chat.terminal import SCRIPT, Terminal
from tests.programs import Preloaded
from tests.toolkit.shell.conftest import has_sandbox, mark, sandbox  # noqa: F401

KEPT_VARIABLES = (
    "PATH",
    "PYTHONPATH",
    "LANG",
    "COVERAGE_PROCESS_START",
    "COVERAGE_PROCESS_CONFIG",
    "VIRTUAL_ENV",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The working folder of the chats."""
    made = Path(os.path.realpath(tmp_path)) / "work"
    made.mkdir()
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file that conversations are kept in."""
    return tmp_path / "data" / "conversations.sqlite3"


@pytest.fixture
def environment(tmp_path: Path, file: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return {
        **kept,
        "HOME": str(tmp_path / "home"),
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
        "KANTAN_AGENTS_DB": str(tmp_path / "traces.sqlite3"),
        "KANTAN_AGENTS_CONVERSATIONS": str(file),
    }


@pytest.fixture
def chat(
    preloaded: Preloaded, environment: dict[str, str], folder: Path
) -> Iterator[Callable[..., Terminal]]:
    """``chat(server, "--agent", ..., columns=20)``: a chat on a terminal, which waits for a message."""
    with ExitStack() as stack:

        def start(server: OfflineServer, *arguments: str, env: Any = None, **size: int) -> Terminal:
            whole = {**environment, **server.environment(), **(env or {})}
            terminal = Terminal(preloaded, "chat", *arguments, env=whole, cwd=folder, **size)
            stack.enter_context(terminal)
            terminal.wait_for_prompt()
            return terminal

        yield start


@pytest.fixture
def lines(preloaded: Preloaded, environment: dict[str, str], folder: Path, tmp_path: Path) -> Any:
    """``lines(server, b"Hello\\n", "--yes", "pay")``: a chat whose questions are in a file."""

    def run(server: OfflineServer, content: bytes, *arguments: str) -> Any:
        questions = tmp_path / "questions"
        questions.write_bytes(content)
        whole = {**environment, **server.environment()}
        command: list[str | Path] = [SCRIPT, f"stdin:{questions}", "chat", *arguments]
        return preloaded.run(command, env=whole, cwd=folder)

    return run


@pytest.fixture
def kept(file: Path) -> Iterator[Callable[[str], Any]]:
    """``kept("last")``: a conversation as it is in the file."""
    with ExitStack() as stack:

        def load(name: str = "last") -> Any:
            store = Conversations(file)
            stack.callback(store.close)
            return store.load(name)

        yield load
