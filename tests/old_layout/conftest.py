"""Copies of the stored data, which the tests may change, and the program."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.cli.app import invoke
from kantan_agents.testing import OfflineServer
from tests.old_layout import shop

DATA = Path(__file__).with_name("data")

Copied = Callable[[str], Path]
Shown = Callable[..., str]


@pytest.fixture
def copied(tmp_path: Path) -> Copied:
    """``copied("traces.db")``: a copy of a file or folder of the data."""

    def copy(name: str) -> Path:
        source, target = DATA / name, tmp_path / name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            target.write_bytes(source.read_bytes())
        return target

    return copy


@pytest.fixture
def facts() -> dict[str, Any]:
    """What the older layout has noted about the data."""
    noted: dict[str, Any] = json.loads((DATA / "facts.json").read_text(encoding="utf-8"))
    return noted


@pytest.fixture
def server() -> Iterator[OfflineServer]:
    """The models of the shop."""
    with OfflineServer(shop.reply) as running:
        yield running


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shown:
    """``shown("traces", "list", "--db", path)``: what the program prints."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str | Path) -> str:
        capsys.readouterr()
        code = invoke([str(one) for one in arguments])
        printed = capsys.readouterr()
        assert (code, printed.err) == (0, "")
        return printed.out

    return run
