"""A shop with recorded failures: its agent, its judge and its reflection model are one server on loopback."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import attrs
from agents import set_trace_processors

from kantan_agents import RUBRIC, Agent, Prompt, SQLiteRecorder, TraceStore
from kantan_agents.lab import Cohort, Evaluator, Improvement
from kantan_agents.lab.evaluation.evaluators import judged
from kantan_agents.lab.experiment.prices import Prices
from kantan_agents.lab.improve import improve
from kantan_agents.lab.improve.parts import SPLIT, parts_of
from kantan_agents.testing import OfflineServer, ScriptedToolCall

OLD = "Answer questions of {{ $ctx.customer }} about orders."
POLITE = f"{OLD} Be polite."
REFLECTS = "You improve the instructions of an agent"
JUDGES = "Score the answer"

Propose = Callable[[str, int], Any]
"""Returns the reply of the reflection model to a question, by its number from 1."""


def proposal(text: str, changes: str = "It asks for politeness.") -> dict[str, str]:
    return {"changes": changes, "prompt": text}


def scripted(*texts: Any) -> Propose:
    """Return a reflection model that proposes these texts in turn, and the last one again and again."""

    def propose(_question: str, number: int) -> Any:
        one = texts[min(number, len(texts)) - 1]
        return proposal(one) if isinstance(one, str) else one

    return propose


def last_text(request: Any) -> str:
    return str(request.input[-1].get("content") or "")


def answer(request: Any) -> Any:
    """Answer as a model that is polite if its instructions say so."""
    last, instructions = request.input[-1], str(request.system_instructions)
    if last.get("type") == "function_call_output":
        return f"Dear customer: {last['output']}" if "polite" in instructions else str(last["output"])
    number = last_text(request).split()[-1]
    if "generous" in instructions:
        return ScriptedToolCall("refund", {"number": number})
    return ScriptedToolCall("status", {"number": number})


@attrs.define
class Shop:
    """A trace database with recorded runs, and the server that answers for every model.

    Attributes:
        path: The database.
        folder: Where working folders are made.
        propose: The reflection model.
        answers: The agent's model.
        score: The judge: the score of an output.
        server: The server.
        respond: What the server replies; ``reply`` unless a test replaces it.
        ran: Names of the tools whose bodies have run.
    """

    path: Path
    folder: Path
    propose: Propose = attrs.field(factory=lambda: scripted(POLITE))
    answers: Callable[[Any], Any] = answer
    score: Callable[[str], Any] = lambda text: float("Dear customer" in text)
    server: OfflineServer = attrs.field(init=False)
    ran: list[str] = attrs.field(factory=list)
    asked: int = 0

    respond: Callable[[Any], Any] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.respond = self.reply
        # Looked up at each request, as a test may replace it.
        self.server = OfflineServer(lambda request: self.respond(request))  # noqa: PLW0108

    @property
    def store(self) -> TraceStore:
        return TraceStore(self.path)

    def reply(self, request: Any) -> Any:
        instructions = str(request.system_instructions)
        if REFLECTS in instructions:
            self.asked += 1
            return self.propose(last_text(request), self.asked)
        if JUDGES in instructions:
            text = last_text(request).rpartition("The output to judge")[2]
            score = self.score(text)
            if not isinstance(score, float):
                return score
            return {"score": score, "comments": ["tone: greets nobody"] if score < 1 else ["fine"]}
        return self.answers(request)

    def agent(self, text: str = OLD, version: str = "v1", **options: Any) -> Agent[Any]:
        def status(number: str) -> str:
            """Return the status of an order."""
            self.ran.append("status")
            return f"order {number} is on its way"

        def refund(number: str) -> str:
            """Refund an order."""
            self.ran.append("refund")
            return f"order {number} is refunded"

        prompt = Prompt("support", version, text)
        return Agent("support", prompt, model=self.server.bundle(), tools=[status, refund], **options)

    def judge(self) -> Evaluator:
        critic = Agent(
            "critic",
            Prompt("critic", "v1", f"{JUDGES} from 0 to 1."),
            model=self.server.bundle("judge-model"),
            output_type=RUBRIC,
        )
        return judged(critic)

    def improve(self, **options: Any) -> Improvement:
        given: dict[str, Any] = {
            "judge": self.judge(),
            "out": self.folder / "support-improve",
            "reflection_model": self.server.bundle("reflection-model"),
            "rounds": 3,
        }
        agent = options.pop("agent", None) or self.agent()
        return improve(agent, self.store, **{**given, **options})

    def requests_with(self, part: str) -> list[Any]:
        """Return the requests whose instructions contain this."""
        return [one for one in self.server.requests if part in str(one.system_instructions)]


@contextmanager
def shop(
    folder: Path,
    count: int = 20,
    make: Callable[[Shop], Agent[Any]] | None = None,
    context: dict[str, Any] | None = None,
    redact: Any = None,
    database: bytes | None = None,
    **options: Any,
) -> Iterator[Shop]:
    """Put the recorded runs of a shop into a new database, which also records what a test runs.

    Or begin with a database, which must be there before the recorder opens it.
    """
    made = Shop(folder / "traces.sqlite3", folder, **options)
    is_usual = make is None and context is None and redact is None and "answers" not in options
    if is_usual:
        made.path.write_bytes(usual_runs(count) if database is None else database)
    recorder = SQLiteRecorder(made.path, redact=redact)
    set_trace_processors([recorder])
    try:
        with made.server:
            if not is_usual:
                run_shop(made, made.agent() if make is None else make(made), count, context or {})
                recorder.force_flush()
            yield made
    finally:
        set_trace_processors([])
        recorder.shutdown()


@cache
def usual_runs(count: int) -> bytes:
    """Return a database with runs of the usual agent, recorded once: most tests begin with the same ones."""
    with tempfile.TemporaryDirectory() as folder:
        made = Shop(Path(folder, "traces.sqlite3"), Path(folder))
        recorder = SQLiteRecorder(made.path)
        set_trace_processors([recorder])
        try:
            with made.server:
                run_shop(made, made.agent(), count, {})
        finally:
            set_trace_processors([])
            recorder.shutdown()
        assert [one.name for one in Path(folder).iterdir()] == [made.path.name], "all is in one file"
        return made.path.read_bytes()


@contextmanager
def shop_after_search(folder: Path) -> Iterator[tuple[Shop, Improvement]]:
    """Yield a shop whose usual search has ended, and the result.

    The search is made once: for tests that look at what it has left.
    """
    database, journal = usual_search()
    with shop(folder, database=database) as made:
        out = folder / "support-improve"
        out.mkdir()
        (out / "journal.jsonl").write_bytes(journal)
        found = made.improve()
        assert made.server.requests == [], "the journal has it all"
        yield made, found


@cache
def usual_search() -> tuple[bytes, bytes]:
    """Return a database and a journal after a search."""
    with tempfile.TemporaryDirectory() as folder:
        with shop(Path(folder)) as made:
            found = made.improve()
        return made.path.read_bytes(), (found.folder / "journal.jsonl").read_bytes()


def run_shop(made: Shop, agent: Agent[Any], count: int, context: dict[str, Any]) -> None:
    """Ask an agent of a shop about orders."""
    for number in range(count):
        agent.run(f"where is order {number}", {"customer": f"Customer{number}", **context})
    made.server.requests.clear()
    made.ran.clear()


def journal_of(found: Improvement) -> Sequence[dict[str, Any]]:
    """Return the lines of the journal of a search."""
    return [json.loads(line) for line in (found.folder / "journal.jsonl").read_text().splitlines()]


def sealed_orders(shop: Shop) -> set[str]:
    """Return the numbers of the orders in the held-out cases."""
    cohort = Cohort.select(shop.store, agent="support")
    parts = parts_of(cohort, "support", Prompt("support", "v1", OLD), frozenset(), Prices(), SPLIT)
    return {str(case.input).split()[-1] for case in parts.test.open("a test looks at them")}
