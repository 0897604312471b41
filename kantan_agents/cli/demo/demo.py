"""``kantan-agents demo``: the main workflow in five sections."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from kantan_agents.cli.demo import view
from kantan_agents.cli.run.recording import check_database, collect_runs, recording
from kantan_agents.cli.terminal.console import terminal, working
from kantan_agents.cli.traces import view as traces_view

if TYPE_CHECKING:
    from kantan_agents.agent import Agent
    from kantan_agents.core.pipeline import Run
    from kantan_agents.testing import OfflineServer

MAX_SHOWN = 5  # enough, if the database already holds older runs


def show_demo(*, model: str | None, database: Path | None, keep: bool) -> None:
    """Run the demo, by default scripted and in a temporary database."""
    check_database(database)
    console = terminal()
    with _database(database, keep=keep) as path:
        with working(console, "Loading the OpenAI Agents SDK ..."):
            from kantan_agents.cli.demo import agents

            agents.support_agent(model, [])  # fails for an unknown model before anything is printed
        console.print(view.header(model, path, temporary=database is None))
        with _model(model) as (answering, server), recording(path):
            try:
                support = _play(console, answering)
            except Exception:
                console.print(view.unfinished(model, path, kept=keep or database is not None))
                raise
            _search(console, path, support)
        requests = None if server is None else len(server.requests)
    console.print(view.footer(path, kept=keep or database is not None, requests=requests))


def _play(console: Console, model: object) -> Run:
    from kantan_agents.cli.demo import agents as cast

    runs: list[Run] = []
    context = cast.new_context()
    with working(console, "The support agent is running ..."):
        _run(cast.support_agent(model, [collect_runs(runs)]), cast.QUESTION, context)
    support = runs[0]
    console.print(view.heading(1, "A prompt with a version", "Its markers are filled from the context."))
    console.print(view.prompt_view(cast.SUPPORT_PROMPT, str(support.rendered)))
    console.print(view.heading(2, "A run", "The agent looks the order up with a tool, then answers."))
    console.print(view.run_view(support))
    console.print(view.heading(3, "The context, completed", "A structured answer arrives as a dict."))
    console.print(view.context_view(context, "answer"))
    judge = cast.judge_agent(model, judged=str(support.trace_id))
    with working(console, "The judge is running ..."):
        _run(judge, cast.judge_input(context), context)
    console.print(view.heading(4, "A rubric", "Another agent judges the answer: output_type=RUBRIC."))
    console.print(view.verdict_view(context.get("verdict") or {}, cast.PASS_MARK))
    return support


def _run(agent: Agent[Any], question: str, context: dict[str, Any]) -> None:
    from agents import RunConfig

    # The keyword search needs inputs and outputs in the traces, even if an environment variable excludes
    # them. The customer is fictitious.
    agent.run(question, context, run_config=RunConfig(trace_include_sensitive_data=True))


def _search(console: Console, path: Path, support: Run) -> None:
    from kantan_llm.tracing.analysis import group_failed_by_bucket

    from kantan_agents.cli.demo import agents as cast
    from kantan_agents.traces.store import TraceStore

    store = TraceStore(path)
    console.print(view.heading(5, "Found again", "In the trace database, which is kantan-llm's."))
    keyword, prompt = cast.KEYWORD, cast.SUPPORT_PROMPT
    console.print(view.query_view(f'store.traces(keywords=["{keyword}"])'))
    console.print(traces_view.traces_view(store.traces(keywords=[keyword], limit=MAX_SHOWN)))

    console.print()
    console.print(view.query_view(f'store.traces(prompt="{prompt.name}", version="{prompt.version}")'))
    found = store.traces(prompt=prompt.name, version=prompt.version, limit=MAX_SHOWN)
    console.print(traces_view.traces_view(found))

    console.print()
    console.print(view.query_view(f'store.trace("{support.trace_id}")'))
    spans = store.trace(str(support.trace_id)).spans
    console.print(traces_view.spans_view(str(support.trace_id), spans))

    console.print()
    console.print(view.query_view(f"group_failed_by_bucket(store.failed(threshold={cast.PASS_MARK}))"))
    failed = store.failed(cast.PASS_MARK, limit=MAX_SHOWN)
    judged = {span.trace_id: store.get_trace(store.judged(span.trace_id)) for span in failed}
    console.print(traces_view.failures_view(group_failed_by_bucket(failed), judged))


@contextmanager
def _model(name: str | None) -> Iterator[tuple[object, OfflineServer | None]]:
    if name is not None:
        yield name, None
        return
    from kantan_agents.cli.demo.agents import script
    from kantan_agents.testing import OfflineServer

    with OfflineServer(script()) as server:
        yield server.bundle("scripted"), server


@contextmanager
def _database(given: Path | None, *, keep: bool) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    directory = Path(tempfile.mkdtemp(prefix="kantan-agents-"))
    try:
        yield directory / "traces.sqlite3"
    finally:
        if not keep:
            shutil.rmtree(directory, ignore_errors=True)
