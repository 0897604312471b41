"""Write ``data/``: what the layout before the moves has stored. It is never written again.

It was made at commit be345d1, with SDK 0.20.0 and dbos 3.4.0. To see how, or to add a kind of file::

    git worktree add --detach ../older be345d1
    mkdir ../older/tests/old_layout
    cp tests/old_layout/*.py ../older/tests/old_layout
    cd ../older
    python -m pip install -e ".[dev]"
    python -m tests.old_layout.make_data FOLDER

``data/project`` and ``data/suite`` were written by hand.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
from agents import set_trace_processors

from kantan_agents import (
    DurableRuns,
    Recording,
    SQLiteRecorder,
    TraceStore,
    record_traces,
)
from kantan_agents.middleware import Cache, to_json
from kantan_agents.testing import OfflineServer
from tests.old_layout import shop

GREETINGS = 14
UNITS = 6
CASES = 3
EVALUATION_ENDS = 4  # at this request, of six
SEARCH_ENDS = 6


@contextmanager
def recorded(place: Path) -> Iterator[SQLiteRecorder]:
    """Record all runs in a database, and nowhere else."""
    set_trace_processors([])
    recorder = record_traces(place)
    try:
        yield recorder
    finally:
        set_trace_processors([])
        recorder.shutdown()


def make_runs(server: OfflineServer, recorder: SQLiteRecorder, place: Path, folder: Path) -> None:
    """Make runs of each kind: with tools, recorded, judged, with rules, failed, structured, delegated."""
    context = shop.support(server).run("Where is order 4711", dict(shop.CUSTOMER))
    recorder.force_flush()
    store = TraceStore(place)
    trace_id = store.traces(limit=1)[0].trace_id
    Recording.from_trace(store, trace_id).save(folder / "recording.json")
    judged = {"judged_trace_id": trace_id}
    shop.critic(server, metadata=judged).run(str(context["result"].final_output))
    denied = {**shop.CUSTOMER, "tool_rules": {"deny": ["refund"]}}
    shop.support(server, shop.POLITE, "v2").run("Refund order 12", denied)
    limits = {"params": {"refund": {"order_id": {"maxLength": 1}}}}
    shop.support(server, shop.POLITE, "v2").run("Refund order 12", {**shop.CUSTOMER, "tool_rules": limits})
    with suppress(Exception):
        shop.support(server).run("Fail", dict(shop.CUSTOMER))
    shop.biller(server).run("The bill of order 4711")
    shop.lead(server).run("Check it.")
    for number in range(GREETINGS):
        shop.greeter(server).run(f"Hello, where is order {number}", {"customer": f"Customer{number}"})


def make_evaluation(server: OfflineServer, place: Path, folder: Path) -> None:
    """Make a finished evaluation with labels, and the files of datasets."""
    package = import_module("kantan_agents.evaluation")
    cases = [
        package.Case(f"Hello, where is order {number}", id=f"o{number}", context=dict(shop.CUSTOMER))
        for number in range(CASES)
    ]
    dataset = package.Dataset("orders", cases)
    dataset.save(folder / "orders.jsonl")
    dataset.save(folder / "orders.csv")
    dataset.split(train=0.3, validation=0.1, test=0.6, seed=2).test.save(folder / "sealed.jsonl")
    queue = package.LabelQueue.of(evaluated(server, place, dataset, "finished"), "is_polite", by="Aiko")
    while (item := queue.current) is not None:
        queue.label(item, float("Dear" in str(item.output)))


def evaluated(server: OfflineServer, place: Path, dataset: Any, name: str) -> Any:
    """Evaluate two prompts."""
    return import_module("kantan_agents.evaluation").evaluate(
        {"v1": shop.greeter(server), "v2": shop.greeter(server, shop.POLITE, "v2")},
        dataset,
        [shop.is_polite, shop.length],
        name=name,
        store=place,
        concurrency=1,
    )


def make_versions(folder: Path) -> None:
    """Note the versions of evaluators."""
    with OfflineServer() as server:
        package = import_module("kantan_agents.evaluation.evaluators")
        note(folder, "versions", shop.versions(server, package))


def make_cohort(server: OfflineServer, place: Path, folder: Path) -> None:
    """Replay two runs with another prompt."""
    replay: Any = import_module("kantan_agents.replay")
    cohort = replay.Cohort.select(TraceStore(place), prompt="greeting", version="v1", limit=2)
    note(folder, "cohort", list(cohort.trace_ids))
    replay.replay_cohort(cohort, shop.greeter(server), replay.Change.prompt(shop.POLITE), name="politely")


def make_rollout(server: OfflineServer, recorder: SQLiteRecorder, place: Path, folder: Path) -> None:
    """Make runs of a rollout, give it one more step, and note the arm of each unit."""
    rollout: Any = import_module("kantan_agents.rollout")
    arms = {}
    for number in range(UNITS):
        user = f"user{number}"
        context = shop.shy(server, place).run(f"Hello, where is order {number}", {"customer": user})
        recorder.force_flush()
        arms[user] = str(TraceStore(place).traces(limit=1)[0].metadata["arm"])
        rollout.record_score(context, "thumb", number % 2)
    rollout.promote("shy", by="Mia", reason="two quiet days")
    note(folder, "arms", arms)


def make_rest(folder: Path) -> None:
    """Make what is not in the trace database."""
    set_trace_processors([])
    with OfflineServer(shop.reply) as server:
        make_others(server, folder)
        make_conversation(server, folder)


def make_others(server: OfflineServer, folder: Path) -> None:
    """Make a paused run, a cache of answers, and one of vectors."""
    retrieval: Any = import_module("kantan_agents.retrieval")
    (folder / "paused.txt").write_text(to_json(shop.payer(server).run("Pay it back."), key=shop.KEY))

    class Redirected(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            request.url = request.url.copy_with(host="127.0.0.1", port=httpx.URL(server.base_url).port)
            return await super().handle_async_request(request)

    async def ask() -> None:
        cache = Cache(folder / "answers.db", ttl=shop.CENTURY, per=None)
        async with Redirected() as transport:
            await shop.thrifty(shop.distant_model(transport), cache).run_async("Is it late?")

    asyncio.run(ask())
    found = retrieval.EmbeddingRetriever(
        shop.Embedding(), cache=folder / "vectors.db", model_name="shop-embedding"
    )
    shop.finder(server, found).run("What is the status?")


def make_conversation(server: OfflineServer, folder: Path) -> None:
    """Chat about two questions."""
    (folder / "chat_shop.py").write_text(
        "from kantan_agents import Agent\nagent = Agent('greeter', 'Answer.', model='gpt-6.1-terra')\n"
    )
    environ = {
        **os.environ,
        **server.environment(),
        "KANTAN_AGENTS_CONVERSATIONS": str(folder / "conversations.db"),
        "KANTAN_AGENTS_DB": str(folder / "chat.db"),
    }
    subprocess.run(
        [sys.executable, "-m", "kantan_agents", "chat", "--agent", "chat_shop:agent"],
        input=b"Hello, who is there?\nAnd now?\n",
        env=environ,
        cwd=folder,
        check=True,
    )
    for name in ("chat_shop.py", "chat.db"):
        (folder / name).unlink()


class Killing:
    """A model in whose request the process is killed, like a machine that is switched off.

    Args:
        recorder: It has written what was recorded before.
        request: The number of the request.
    """

    def __init__(self, recorder: SQLiteRecorder, request: int) -> None:
        self._recorder = recorder
        self._left = request

    def __call__(self, request: Any) -> Any:
        """Reply, or end the process."""
        self._left -= 1
        if not self._left:
            end(self._recorder)
        return shop.reply(request)


def end(recorder: SQLiteRecorder) -> None:
    """End this process at once, when everything that has ended before is written."""
    time.sleep(1)
    recorder.force_flush()
    os.kill(os.getpid(), signal.SIGKILL)


def evaluate_until_killed(folder: Path) -> None:
    """Evaluate a part of what is to be evaluated."""
    place = folder / "traces.db"
    with recorded(place) as recorder, OfflineServer(Killing(recorder, EVALUATION_ENDS)) as server:
        dataset = import_module("kantan_agents.evaluation").Dataset.load(folder / "orders.jsonl")
        evaluated(server, place, dataset, "interrupted")


def search(server: OfflineServer, folder: Path) -> None:
    """Improve the prompt of the greetings."""
    import_module("kantan_agents.improve").improve(
        shop.greeter(server),
        TraceStore(folder / "traces.db"),
        judge=shop.critic(server),
        rounds=1,
        split=(0.3, 0.2, 0.5),
        concurrency=1,
        out=folder / "greeting-improve",
    )


def search_until_killed(folder: Path) -> None:
    """Begin to improve the prompt."""
    with recorded(folder / "traces.db") as recorder, OfflineServer(Killing(recorder, SEARCH_ENDS)) as server:
        search(server, folder)


def search_whole(folder: Path) -> None:
    """Improve the prompt in a copy of the folder, and note how many requests that takes."""
    copy = folder.with_name(f"{folder.name}-copy")
    shutil.copytree(folder, copy)
    with recorded(copy / "traces.db"), OfflineServer(shop.reply) as server:
        search(server, copy)
        note(folder, "requests_of_search", len(server.requests))
    shutil.rmtree(copy)


def sell_until_killed(folder: Path) -> None:
    """Make durable runs: finished, failed, waiting, queued, scheduled, and one in which the process ends."""

    def effect(line: str) -> None:
        if line.startswith("send"):
            end(recorder)

    async def sell() -> None:
        agent = shop.Clerk(server, effect).agent
        async with DurableRuns(f"sqlite:///{folder / 'runs.db'}", agents=[agent], keep_events=True) as runs:
            await agent.run_async("Wait.", dict(shop.CUSTOMER))
            with suppress(Exception):
                await agent.run_async("Break.", dict(shop.CUSTOMER))
            await agent.run_async("Sign.", dict(shop.CUSTOMER))
            await agent.enqueue("Wait.", dict(shop.CUSTOMER), queue="later")
            await runs.schedule("leap", "0 0 29 2 *", "clerk", "Wait.", queue="later")
            await agent.run_async("Sell.", dict(shop.CUSTOMER))

    with recorded(folder / "traces.db") as recorder, OfflineServer(shop.reply) as server:
        asyncio.run(sell())


def note(folder: Path, name: str, value: Any) -> None:
    """Note something that the tests need to know."""
    place = folder / "facts.json"
    facts = json.loads(place.read_text()) if place.exists() else {}
    place.write_text(json.dumps({**facts, name: value}, indent=1) + "\n")


def make_names(folder: Path) -> None:
    """Note the public names of the packages that users import from."""
    names = {
        package: sorted(import_module(package).__all__)
        for package in (
            "kantan_agents",
            "kantan_agents.durable",
            "kantan_agents.errors",
            "kantan_agents.middleware",
            "kantan_agents.testing",
            "kantan_agents.testing.strategies",
        )
    }
    (folder / "names.json").write_text(json.dumps(names, indent=1) + "\n")


def settle(folder: Path) -> None:
    """Bring each database into one small file, and delete what is not part of the data."""
    for place in folder.glob("*.db"):
        with closing(sqlite3.connect(place)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA page_size = 512")  # most tables have few rows
            connection.execute("VACUUM")
    with closing(sqlite3.connect(folder / "traces.db")) as connection:
        query = "SELECT COUNT(*) FROM kantan_agents_evaluation_results"
        note(folder, "results", connection.execute(query).fetchone()[0])
    shutil.rmtree(folder / "runs.db.workers")
    (folder / "greeting-improve" / ".lock").unlink()


def make_traces(folder: Path) -> None:
    """Make the trace database, as far as no process has to be killed for it."""
    place = folder / "traces.db"
    with recorded(place) as recorder, OfflineServer(shop.reply) as server:
        make_runs(server, recorder, place, folder)
        recorder.force_flush()
        make_evaluation(server, place, folder)
        make_cohort(server, place, folder)
        make_rollout(server, recorder, place, folder)


PARTS = {
    "names": (make_names, 0),
    "versions": (make_versions, 0),
    "traces": (make_traces, 0),
    "rest": (make_rest, 0),
    "evaluate": (evaluate_until_killed, -signal.SIGKILL),
    "search": (search_whole, 0),
    "search a part": (search_until_killed, -signal.SIGKILL),
    "sell": (sell_until_killed, -signal.SIGKILL),
}
"""What is made, each in a process of its own, with the code that it ends with."""


def main(folder: Path) -> None:
    """Write everything into a folder."""
    folder.mkdir()
    environ = {**os.environ, "KANTAN_AGENTS_STATE_DIR": str(folder / "state")}
    for part, (_, code) in PARTS.items():
        program = [sys.executable, "-m", "tests.old_layout.make_data", str(folder), part]
        assert subprocess.run(program, env=environ, check=False).returncode == code, part
    settle(folder)
    shutil.rmtree(folder / "state", ignore_errors=True)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    PARTS[sys.argv[2]][0](place) if sys.argv[2:] else main(place)
