"""A dataset, an agent in a module and a model server, for the tests of ``kantan-agents eval``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from kantan_agents.lab import Case, Dataset
from kantan_agents.testing import OfflineServer

MODULE = """
from kantan_agents import Agent, Prompt
from kantan_agents.lab.evaluation import FinishedCase, evaluator

agent = Agent("shop", Prompt("shop", "v1", "Answer."), model="gpt-5-mini")
plain = Agent("plain", "Answer.", model="gpt-5-mini")
something = 3


@evaluator
def length(finished: FinishedCase) -> int:
    return len(finished.text)


@evaluator(version="1")
def broken(finished: FinishedCase) -> float:
    raise KeyError("nothing")


def is_kind(finished):
    return "please" in finished.text


def make():
    return agent
"""


def reply(request: Any) -> str:
    """Answer kindly if the prompt asks for it; the number of the order decides otherwise."""
    number = int(str(request.input[-1]["content"]).split()[-1])
    is_kind = "kindly" in str(request.system_instructions) or number % 3 == 0
    return f"order {number}: please wait" if is_kind else f"order {number}: wait"


@attrs.frozen
class Shop:
    """What a test of ``eval`` needs.

    Attributes:
        folder: The working directory.
        server: The model server.
        module: Name of the module with the agent.
    """

    folder: Path
    server: OfflineServer
    module: str

    @property
    def db(self) -> Path:
        """The trace database."""
        return self.folder / "eval.sqlite3"

    def run(self, *more: str) -> list[str]:
        """Return the arguments of ``eval run`` with both prompts."""
        return [
            *("eval", "run", "orders.jsonl", "--db", str(self.db), "--agent", f"{self.module}:agent"),
            *("--variant", "v2=kind.md", "--evaluator", "kind=contains:please", *more),
        ]

    def read(self, command: str, *more: str) -> list[str]:
        """Return the arguments of another command of ``eval``."""
        return ["eval", command, *more, "--db", str(self.db)]


def orders(count: int = 12) -> Dataset:
    """Return a dataset of questions about orders."""
    return Dataset("orders", [Case(f"order {number}", id=f"o{number}") for number in range(count)])


@contextmanager
def shop_in(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: Any = reply) -> Iterator[Shop]:
    """Make the files, work in their directory, and send all model calls to a server."""
    module = f"shop_{abs(hash(folder))}"  # Python keeps a module that was imported
    (folder / f"{module}.py").write_text(MODULE)
    (folder / "kind.md").write_text("Answer kindly.\n")
    (folder / "context.json").write_text(json.dumps({"city": "Oslo"}))
    orders().save(folder / "orders.jsonl")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    with OfflineServer(answer) as server:
        for key, value in server.environment().items():
            monkeypatch.setenv(key, value)
        yield Shop(folder, server, module)
