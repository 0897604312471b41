"""A chat asks about the instructions of a project, uses them, and goes on with them as they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.testing import OfflineServer
from tests.cli.chat.terminal import Terminal
from tests.programs import Preloaded

QUESTION = "Trust this file until it changes? [y/N]:"


@pytest.fixture
def begin(preloaded: Preloaded, environment: dict[str, str], folder: Path) -> Iterator[Any]:
    """``begin(server, "--tools", ".")``: a chat on a terminal, which may ask something first."""
    with ExitStack() as stack:

        def start(server: OfflineServer, *arguments: str) -> Terminal:
            whole = {**environment, **server.environment()}
            terminal = Terminal(preloaded, "chat", *arguments, env=whole, cwd=folder, columns=240)
            return stack.enter_context(terminal)

        yield start


@pytest.mark.slow
def test_a_person_agrees_to_the_file_of_a_folder_once_and_to_each_change(begin: Any, folder: Path) -> None:
    file = folder / "AGENTS.md"
    file.write_text("Use tabs.\u202e\x1b[2J\n")
    with OfflineServer(["One.", "Two.", "Three."]) as server:
        terminal = begin(server, "--tools", ".")
        shown = terminal.wait_for(QUESTION)
        assert f"{file} is not trusted yet. It instructs agents:" in shown
        assert "  Use tabs.[U+202E][U+001B][2J" in shown
        terminal.enter("y")
        terminal.wait_for_prompt()
        extent = "16 bytes, 2 invisible characters in it"
        terminal.wait_for(f"instructions of this project: {file}, {extent}")
        terminal.ask("1?", "One.")
        file.write_text("Use blanks.\n")
        shown = terminal.enter("2?", until="/reload uses them as they are now.")
        assert "  -Use tabs.[U+202E][U+001B][2J\n  +Use blanks.\n" in shown
        terminal.wait_for_prompt()
        terminal.ask("/reload", "They are used from now on.")
        terminal.enter("3?", until="Three.")
    got = [request.body["instructions"] for request in server.requests]
    assert ["Use tabs." in text for text in got] == [True, True, False]
    assert got[2].endswith("Use blanks.")


@pytest.mark.slow
def test_without_a_yes_the_chat_goes_on_without_the_file(begin: Any, folder: Path) -> None:
    (folder / "CLAUDE.md").write_text("Use tabs.\n")
    with OfflineServer(["One."]) as server:
        terminal = begin(server, "--tools", ".")
        terminal.wait_for(QUESTION)
        terminal.enter("n")
        terminal.wait_for_prompt()
        terminal.wait_for("left out: it is not trusted yet")
        terminal.enter("1?", until="One.")
    assert server.requests[0].body["instructions"] == "You are a helpful assistant."


def test_in_a_pipe_nothing_is_asked_and_nothing_is_used(lines: Any, folder: Path) -> None:
    (folder / "AGENTS.md").write_text("Use tabs.\n")
    with OfflineServer(["One.", "Two."]) as server:
        ended = lines(server, b"1?\n", "--tools", ".")
        assert ended.returncode == 0 and "left out: it is not trusted yet" in ended.stderr
        lines(server, b"2?\n", "--tools", ".", "--project-instructions", "use")
    got = [request.body["instructions"] for request in server.requests]
    assert ["Use tabs." in text for text in got] == [False, True]


def test_an_agent_of_a_module_decides_itself(lines: Any, folder: Path, shop: str) -> None:
    (folder / "AGENTS.md").write_text("Use tabs.\n")
    with OfflineServer(["One."]) as server:
        ended = lines(server, b"1?\n", "--agent", shop)
        assert "AGENTS.md" not in ended.stderr
        refused = lines(server, b"1?\n", "--agent", shop, "--project-instructions", "use")
    assert server.requests[0].body["instructions"] == "Serve." and len(server.requests) == 1
    assert refused.returncode == 2 and "cannot be combined with an agent of a module" in refused.stderr
