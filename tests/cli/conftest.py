"""Fixtures that run the program: in this process where possible, else in a separate process."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
from kantan_llm.tracing import SpanQuery, SQLiteTracer, TraceQuery

from kantan_agents.agent.running.portal import background_loop
from kantan_agents.cli.app import invoke
from kantan_agents.testing import OfflineServer
from kantan_agents.traces import registry
from tests.cli.evaluated_shop import Shop, shop_in
from tests.cli.recorded_runs import Recorded, record_hostile, record_mixed, record_shop
from tests.programs import Preloaded, Program
from tests.recorders import end_recorder

ARGUMENTS = ("-m", "kantan_agents")
PROGRAM = (sys.executable, *ARGUMENTS)
PROVIDER_PREFIXES = ("OPENAI_", "CLAUDE_", "GOOGLE_", "KANTAN_LLM_", "LMSTUDIO_", "OLLAMA_", "OPENROUTER_")
TERMINAL_VARIABLES = ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "PYTHONIOENCODING")


@attrs.frozen
class Outcome:
    """Exit code and output of the program."""

    code: int
    stdout: str
    stderr: str

    def is_one_error(self, message: str) -> None:
        """Assert that nothing is on stdout and one line on stderr, of a mistake of the caller."""
        assert (self.code, self.stdout) == (2, "")
        assert self.stderr.startswith(f"error: [kantan-agents]{message}")
        assert self.stderr.count("\n") == 1


Invoke = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in list(os.environ):
        if name.startswith(PROVIDER_PREFIXES) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    for name in TERMINAL_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    # `run` records by default; not in the working directory of the tests.
    recorded = tmp_path_factory.mktemp("recorded") / "traces.sqlite3"
    monkeypatch.setenv("KANTAN_AGENTS_DB", str(recorded))
    monkeypatch.delenv("OPENAI_AGENTS_DISABLE_TRACING", raising=False)


@pytest.fixture
def kantan_agents(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Invoke]:
    """``kantan_agents("run", "hi", stdin=b"...")`` in this process; the SDK is imported only once.

    At its end, MCP servers and recorders end as they do with the process of the program.
    """

    def run(*arguments: str, stdin: bytes | None = None) -> Outcome:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = invoke(arguments)
        return Outcome(code, *capsys.readouterr())

    yield run
    background_loop.stop()
    for recorder in registry.recorders():
        end_recorder(recorder)


@pytest.fixture
def start(preloaded: Preloaded) -> Callable[..., Program]:
    """Start the program with pipes and return at once: ``start("run", "hi", env=...)``."""

    def popen(*arguments: str, env: Mapping[str, str]) -> Program:
        return preloaded.popen([*ARGUMENTS, *arguments], env={**os.environ, **env})

    return popen


@pytest.fixture
def process(preloaded: Preloaded) -> Invoke:
    """``process("run", "hi", env=server.environment())`` in a separate process."""

    def run(*arguments: str, env: Mapping[str, str] | None = None) -> Outcome:
        finished = preloaded.run([*ARGUMENTS, *arguments], env={**os.environ, **(env or {})})
        return Outcome(finished.returncode, finished.stdout, finished.stderr)

    return run


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AbstractContextManager[OfflineServer]]:
    """``with serve(["Fine."]) as server``: an ``OfflineServer`` as every provider of this process."""

    @contextmanager
    def use(*arguments: Any, **options: Any) -> Iterator[OfflineServer]:
        with OfflineServer(*arguments, **options) as server:
            for name, value in server.environment().items():
                monkeypatch.setenv(name, value)
            yield server

    return use


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository as working directory, and a home, both without agents."""
    home, root = tmp_path / "home", Path(os.path.realpath(tmp_path)) / "project"
    home.mkdir()
    (root / ".git").mkdir(parents=True)
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(home))
    for variable in ("CLAUDE_CONFIG_DIR", "KODE_CONFIG_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for temporary files."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


@attrs.frozen
class Database:
    """A trace database, read with kantan-llm's unmodified tracer."""

    path: Path

    def traces(self, **query: Any) -> list[Any]:
        return self._read("search_traces", TraceQuery(**query))

    def spans(self, **query: Any) -> list[Any]:
        return self._read("search_spans", SpanQuery(**query))

    def _read(self, search: str, query: Any) -> list[Any]:
        tracer = SQLiteTracer(str(self.path))
        try:
            found: list[Any] = getattr(tracer, search)(query=query)
        finally:
            tracer.shutdown()
        return found


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "traces.sqlite3")


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Runs of a shop, recorded once; tests that change the file use a copy."""
    return record_shop(tmp_path_factory.mktemp("shop") / "traces.sqlite3")


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Runs that failed, recovered or had a call refused."""
    return record_mixed(tmp_path_factory.mktemp("mixed") / "traces.sqlite3")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A run with hostile texts only."""
    return record_hostile(tmp_path_factory.mktemp("hostile") / "traces.sqlite3")


@pytest.fixture
def evaluated_shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A dataset, an agent and a model server for ``eval``."""
    with shop_in(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def evaluated(evaluated_shop: Shop, kantan_agents: Invoke) -> Shop:
    """The same after ``eval run`` with two prompts."""
    outcome = kantan_agents(*evaluated_shop.run("--name", "orders", "--quiet"))
    assert (outcome.code, outcome.stdout, outcome.stderr) == (0, "", "")
    evaluated_shop.server.requests.clear()
    return evaluated_shop
