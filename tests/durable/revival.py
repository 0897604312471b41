"""Runs that end where a process would be killed, and go on with another agent, all in one process.

A kill is an exception that no code handles. Then the ``DurableRuns`` is stopped, and another one goes on.
Many cases share the two, as starting and stopping them takes longest. Real kills are in ``test_killed.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from kantan_agents import Agent
from kantan_agents.durable import Durable, DurableOutcome, DurableRuns
from kantan_agents.testing import OfflineServer, RecordedRequest, function_call


class KilledError(BaseException):
    """The process ends here."""


LOOK_INTERVAL = 0.2
"""Each agent has a queue of its own, so many agents that look much more often take most of the time."""

Replies = Mapping[int, Any] | Callable[[RecordedRequest], Any]
"""What the model says by the number of results in the conversation, or by the request."""


@attrs.define(eq=False)
class Case:
    """A run that is killed and goes on.

    Attributes:
        build: Returns the agent of the case, for the first process and for the second.
        replies: What its model says.
        input: The input of the run.
        context: Its context.
        options: Further options of the run.
        begin: Begins it otherwise than with ``run_async``.
        ends: Whether it ends, and does not wait for anything.
        name: Its name, which is that of its agent.
        is_first: Whether the first process is on.
        effects: What its tools have done.
        keys: Keys that its tools have seen.
        seen: Other values that its tools have seen.
        requests: What its model was asked, in the first process and in the second.
        server: The scripted model of all cases.
        raised: What the first process has raised.
        outcome: How the run has ended.
        error: The error with which it has failed.
        status: Its status at the end.
        run_id: Its id.
    """

    build: Callable[[Case], Agent[Any]]
    replies: Replies = attrs.field(factory=lambda: {0: "Done."})
    input: Any = "Go."
    context: dict[str, Any] = attrs.field(factory=dict)
    options: dict[str, Any] = attrs.field(factory=dict)
    begin: Callable[[Agent[Any], Case], Any] | None = None
    ends: bool = True
    name: str = ""
    is_first: bool = True
    effects: list[str] = attrs.field(factory=list)
    keys: list[tuple[str, str]] = attrs.field(factory=list)
    seen: list[Any] = attrs.field(factory=list)
    requests: tuple[list[RecordedRequest], list[RecordedRequest]] = attrs.field(factory=lambda: ([], []))
    server: Any = None
    raised: BaseException | None = None
    outcome: DurableOutcome | None = None
    error: str | None = None
    status: str = ""
    run_id: str = ""

    def agent(self, *middleware: Any, **options: Any) -> Agent[Any]:
        """Return an agent of the case; by default with ``Durable()`` after other middleware."""
        given = (
            middleware if any(isinstance(one, Durable) for one in middleware) else (*middleware, Durable())
        )
        return Agent(
            self.name,
            options.pop("instructions", "Help."),
            model=options.pop("model", None) or self.server.bundle(),
            tool_providers=options.pop("tool_providers", None),
            middleware=list(given),
            **options,
        )

    def start_anew(self) -> None:
        """Forget what has happened: one process of the suite may make the cases of a module twice."""
        for known in attrs.fields(Case):
            if known.name not in _GIVEN:
                default: Any = known.default
                setattr(self, known.name, default.factory() if hasattr(default, "factory") else default)

    def effect(self, line: str) -> None:
        """Note something that a tool has done."""
        self.effects.append(line)

    def die(self) -> None:
        """End the first process here."""
        if self.is_first:
            raise KilledError

    def reply(self, request: RecordedRequest) -> Any:
        """Return what the model says."""
        self.requests[0 if self.is_first else 1].append(request)
        if callable(self.replies):
            return self.replies(request)
        return self.replies[len(results(request))]

    @property
    def output(self) -> Any:
        """The final output."""
        assert self.outcome is not None, (self.status, self.error, self.raised)
        return self.outcome.output

    @property
    def answers(self) -> list[str]:
        """The results of tools in the last request of the second process."""
        return results(self.requests[1][-1])


_GIVEN = ("build", "replies", "input", "context", "options", "begin", "ends")


def results(request: RecordedRequest) -> list[str]:
    """Return the results of tools in a request, in order."""
    return [str(item["output"]) for item in request.input if item.get("type") == "function_call_output"]


def call(name: str, call_id: str, **arguments: Any) -> Any:
    """Return a tool call of a model."""
    return function_call(name, arguments, call_id=call_id)


def revive(
    folder: Path,
    cases: Mapping[str, Case],
    *,
    between: Callable[[str], None] | None = None,
    goes_on: bool = True,
    **options: Any,
) -> str:
    """Make each case in a process that ends, and in another one; return the URL of the database.

    Args:
        folder: Where the database is.
        cases: The cases by name.
        between: What happens between the two, with the URL.
        goes_on: Whether there is a second process.
        **options: For ``DurableRuns``.
    """
    database = f"sqlite:///{folder / 'runs.sqlite3'}"
    given = {"look_interval": LOOK_INTERVAL, **options}
    for case in cases.values():
        case.start_anew()
    with served(cases):
        asyncio.run(make(database, cases, between, given, goes_on=goes_on))
    return database


@contextlib.contextmanager
def served(cases: Mapping[str, Case]) -> Iterator[None]:
    """Serve the model of each case."""

    def reply(request: RecordedRequest) -> Any:
        # Each case has a model of its own name.
        return cases[request.headers["x-case"]].reply(request)

    with OfflineServer(reply) as server:
        for name, case in cases.items():
            case.name, case.server = name, _Named(server, name)
        yield


class _Named:
    """The server, as the model of one case."""

    def __init__(self, server: OfflineServer, name: str) -> None:
        self._server = server
        self._name = name

    def bundle(self, model: str = "gpt-6.1-terra") -> Any:
        """Return a model whose requests name the case."""
        bundle = self._server.bundle(model)
        client = bundle.client.with_options(default_headers={"x-case": self._name})
        return dataclasses.replace(bundle, client=client)


async def make(
    database: str,
    cases: Mapping[str, Case],
    between: Callable[[str], None] | None,
    options: dict[str, Any],
    *,
    goes_on: bool = True,
) -> None:
    """Make the cases of ``served`` in both processes; otherwise as ``revive``."""
    agents = {name: case.build(case) for name, case in cases.items()}
    async with DurableRuns(database, agents=agents.values(), **options):
        await asyncio.gather(*(_begin(agents[name], case) for name, case in cases.items()))
    if between is not None:
        await asyncio.to_thread(between, database)
    if not goes_on:
        return
    for case in cases.values():
        case.is_first = False
    agents = {name: case.build(case) for name, case in cases.items()}
    async with DurableRuns(database, agents=agents.values(), **options) as runs:
        for run in reversed(await runs.list_runs(limit=1000)):
            if run.agent in cases:
                await _end(runs, cases[run.agent], run.run_id)


async def _begin(agent: Agent[Any], case: Case) -> None:
    try:
        if case.begin is not None:
            await case.begin(agent, case)
        else:
            await agent.run_async(case.input, dict(case.context), **case.options)
    except (Exception, KilledError) as error:  # noqa: BLE001 - the test looks at it
        case.raised = error


async def _end(runs: DurableRuns, case: Case, run_id: str) -> None:
    case.run_id = run_id
    try:
        known = await runs.get(run_id)
        is_waiting = (
            known.status == "queued" and known.queue is not None
        )  # for a worker, of which there is none
        if case.ends or (known.status in ("queued", "running") and not is_waiting):
            case.outcome = await runs.result(run_id, timeout=60)
    except Exception as error:  # noqa: BLE001 - the test looks at it
        case.error = str(error)
    case.status = (await runs.get(run_id)).status


@contextlib.contextmanager
def opened(database: str) -> Iterator[sqlite3.Connection]:
    """Open the SQLite file of a URL."""
    with contextlib.closing(sqlite3.connect(database.removeprefix("sqlite:///"))) as connection, connection:
        yield connection


def stored_bytes(folder: Path) -> bytes:
    """Return all bytes of the files in a folder."""
    files: Iterable[Path] = sorted(folder.rglob("*"))
    return b"".join(path.read_bytes() for path in files if path.is_file())
