"""Fixtures for the whole suite: only loopback connections, no leftover trace processors, no real keys."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

# Where Python may not keep what it compiles, as in many containers, every process of the suite would compile
# the package again, and each of pytest's processes would rewrite the asserts of every module again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import kantan_llm.tracing
import pytest
from agents import set_trace_processors
from agents.models import _openai_shared as sdk_defaults
from agents.tracing import get_trace_provider
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from kantan_llm.tracing import SQLiteTracer
from kantan_llm.tracing.search import SpanQuery, SpanRecord, TraceQuery, TraceRecord

from kantan_agents import SQLiteRecorder, refresh_tool_providers
from kantan_agents.models.stream_usage import REFUSALS
from kantan_agents.models.structured.requests.memory import FORMS
from kantan_agents.models.text_calls import CALLERS
from tests.distributions import Distribution, Installed, Use
from tests.mcp_servers import RealServers
from tests.programs import Preloaded
from tests.recorders import end_recorder

# CI draws the same examples each time, so that a failure is caused by the change. `nox -s hunt` draws new
# ones.
settings.register_profile("fast", max_examples=40, deadline=None, derandomize="CI" in os.environ)
settings.register_profile(
    "ci", max_examples=80, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "hunt", max_examples=1_000, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck)
)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fast")
settings.load_profile(_PROFILE)
if _PROFILE == "fast":
    # Hypothesis also tries constants that it reads from all modules of the package and the tests. That takes
    # each process of a new clone five seconds, and a change of any constant would change the examples.
    providers._get_local_constants = lambda: providers._local_constants

# A shell lets what it starts with `&` ignore SIGINT, which children inherit. Tests interrupt children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# State files are written here, also by the processes that tests start, and never in the home directory.
_STATE = tempfile.TemporaryDirectory()
os.environ["KANTAN_AGENTS_STATE_DIR"] = _STATE.name

pytest_plugins = [
    "pytester",
    "tests.leftovers",
    "tests.postgres_server",
    "tests.random_order",
    "tests.temporal_server",
    "tests.tiers",
    "tests.compiled",
]

# Its asserts must be rewritten before any module imports it; tests of several directories do.
pytest.register_assert_rewrite("tests.lab.replay.taping")

PROVIDER_PREFIXES = (
    "ANTHROPIC_",
    "GEMINI_",
    "OPENAI_",
    "CLAUDE_",
    "GOOGLE_",
    "KANTAN_LLM_",
    "LMSTUDIO_",
    "OLLAMA_",
    "OPENROUTER_",
)


def _only_loopback() -> None:
    """Let sockets connect to this machine only, in all tests."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def checked(address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1"):
            raise AssertionError(f"a test tried to reach {address}")

    def guarded(self: socket.socket, address: Any) -> None:
        checked(address)
        connect(self, address)

    def guarded_ex(self: socket.socket, address: Any) -> int:
        checked(address)
        return connect_ex(self, address)

    socket.socket.connect = guarded
    socket.socket.connect_ex = guarded_ex


_only_loopback()

_OPENAI_DEFAULTS = {
    name: getattr(sdk_defaults, name)
    for name in ("_default_openai_client", "_default_openai_key", "_use_responses_by_default")
}


# One fixture without `monkeypatch`, because all tests pay for it.
@pytest.fixture(autouse=True)
def _nothing_of_other_tests() -> Iterator[None]:
    """Start without keys of providers, and end without what a test has left in the process."""
    for name in [name for name in os.environ if name.startswith(PROVIDER_PREFIXES)]:
        del os.environ[name]
    # Servers of two tests may have the same port, and so the same URL.
    FORMS._known = {}
    REFUSALS._origins = {}
    CALLERS._origins = {}
    set_trace_processors([])
    yield
    for processor in get_trace_provider()._multi_processor._processors:
        if isinstance(processor, SQLiteRecorder):
            end_recorder(processor)
        else:
            processor.shutdown()
    set_trace_processors([])
    kantan_llm.tracing.set_trace_processors([])
    # A test or an example of a page may call `agents.set_default_openai_...`.
    for name, value in _OPENAI_DEFAULTS.items():
        setattr(sdk_defaults, name, value)
    # The threads that watch rollouts; the agents of a test live on until the garbage is collected.
    watcher = sys.modules.get("kantan_agents.lab.rollout.live.watcher")
    if watcher is not None:
        watcher._stop_all()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: Any) -> None:
    """Let anyio run each async test, as its ``anyio_mode = "auto"`` does, which anyio 4.7 does not know."""
    if collector.istestfunction(obj, name):
        test = obj.hypothesis.inner_test if hasattr(obj, "hypothesis") else obj
        if iscoroutinefunction(test):
            pytest.mark.usefixtures("anyio_backend")(obj)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while modules are imported, and exclude their objects from later collections."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Exclude what a file has imported and cached, too: collections would take a quarter of the time."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


class TraceDB:
    """A kantan-llm database with the unmodified tracer, read through the search of kantan-llm."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tracer = SQLiteTracer(str(path))

    def traces(self, **query: Any) -> list[TraceRecord]:
        return self._read(lambda reader: reader.search_traces(query=TraceQuery(**query)))

    def spans(self, **query: Any) -> list[SpanRecord]:
        return self._read(lambda reader: reader.search_spans(query=SpanQuery(**query)))

    def final_span(self) -> SpanRecord:
        """Return the last generation span that the library wrote."""
        return self.spans(span_type="generation")[-1]

    def _read(self, read: Callable[[SQLiteTracer], list[Any]]) -> list[Any]:
        reader = SQLiteTracer(str(self.path))
        try:
            return read(reader)
        finally:
            reader.shutdown()


@pytest.fixture
def traces(tmp_path: Path) -> Iterator[TraceDB]:
    database = TraceDB(tmp_path / "traces.sqlite3")
    set_trace_processors([database.tracer])
    yield database
    set_trace_processors([])
    database.tracer.shutdown()


@pytest.fixture(scope="session")
def preloaded() -> Iterator[Preloaded]:
    """``preloaded.run(["-c", code])``: a Python process that need not import the SDK."""
    process = Preloaded({k: v for k, v in os.environ.items() if not k.startswith(PROVIDER_PREFIXES)})
    yield process
    process.close()


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Distributions with tool providers, each installed by pip into its own directory."""
    return Installed(tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="session")
def real_servers(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> RealServers:
    """``MCPServerStdio(real_servers.everything())``: MCP servers of other people, installed on first use."""
    cache = getattr(pytestconfig, "cache", None)  # None with `-p no:cacheprovider`
    return RealServers(tmp_path_factory.mktemp("servers") if cache is None else cache.mkdir("mcp-servers"))


@pytest.fixture
def use(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Use]:
    """``use(ACME)`` installs distributions for this process until the end of the test."""
    used: list[Distribution] = []

    def add(*distributions: Distribution) -> None:
        for distribution in distributions:
            monkeypatch.syspath_prepend(installed.path(distribution))
            used.append(distribution)
        refresh_tool_providers()

    yield add
    for distribution in used:
        sys.modules.pop(distribution.module, None)
    refresh_tool_providers()
