from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from kantan_agents.toolkit.shell.sandbox import find_sandbox
from tests.toolkit.calls import processes_with


@pytest.fixture(scope="session")
def has_sandbox(tmp_path_factory: pytest.TempPathFactory) -> bool:
    root = str(tmp_path_factory.mktemp("probe"))
    return not isinstance(find_sandbox(root, "/bin/sh", writes=True, network=False, readable=()), str)


@pytest.fixture
def sandbox(has_sandbox: bool) -> None:
    if not has_sandbox:
        pytest.skip("bubblewrap is not installed here, or does not work")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.fixture
def mark() -> Iterator[str]:
    """A number of seconds that is in the command lines of this test only; at its end, no process has it."""
    mark = f"1000.{secrets.randbelow(10**12):012}1"
    yield mark
    assert processes_with(mark) == []
