"""Records real runs in a trace database for the tests of ``kantan-agents traces``."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import agents
import attrs
from agents import set_trace_processors
from openai import OpenAIError

from kantan_agents import RUBRIC, Agent, Prompt, Run, SQLiteRecorder
from kantan_agents.cli.run.recording import collect_runs
from kantan_agents.testing import OfflineServer, Reply, ScriptedToolCall

STEERING = "\x1b[2J\x1b]0;owned\x07\x9b31m\x7f"
MARKUP = "[bold red]x[/] [/nope] [link=file:///x]y[/link] :smile:"
LINES = "one\r\ntwo\n\nthree\ttab\u2028four"
LONG = "word " * 2000
UNBROKEN = "x" * 3000
HOSTILE = f"{STEERING}{MARKUP} {LINES} {LONG}{UNBROKEN}"
HALF_A_PAIR = "\ud83d"
WIDE = "東京の天気はどうですか、明日の予定も教えてください。"


def look_up_order(order_id: str) -> str:
    """Look up an order."""
    return json.dumps({"order": order_id, "carrier": "Lantern Post"})


@attrs.frozen
class Recorded:
    """A database, and the trace ids of its runs by name."""

    path: Path
    ids: dict[str, str]


@contextmanager
def recording(path: Path) -> Iterator[None]:
    """Send the traces of all runs to ``path`` only."""
    recorder = SQLiteRecorder(path)
    set_trace_processors([recorder])
    try:
        yield
    finally:
        set_trace_processors([])
        recorder.shutdown()


def ask(
    agent: str,
    prompt: str | Prompt,
    question: Any,
    replies: Sequence[Any],
    context: dict[str, Any] | None = None,
    **options: Any,
) -> str:
    """Run an agent and return its trace id, even if the run fails."""
    runs: list[Run] = []
    with OfflineServer(list(replies)) as server:
        asked = Agent(agent, prompt, model=server.bundle(), middleware=[collect_runs(runs)], **options)
        with suppress(OpenAIError):  # recorded as the error of the run
            asked.run(question, context)
    return str(runs[0].trace_id)


def verdict(judged: str, score: float, *comments: str) -> str:
    """Run a judge on the answer in a trace."""
    replies = [{"score": score, "comments": list(comments)}]
    judge = Prompt("answer-quality", "v1", "Judge.")
    return ask("judge", judge, "Judge it.", replies, output_type=RUBRIC, metadata={"judged_trace_id": judged})


def record_shop(path: Path) -> Recorded:
    """Record the runs of a shop: two versions of a prompt, a failure, verdicts, plain ones, wide ones."""
    call = ScriptedToolCall("look_up_order", {"order_id": "4711"})
    first, second = (Prompt("support", version, f"Help, {version}.") for version in ("v1", "v2"))
    ids: dict[str, str] = {}
    with recording(path):
        ids["v1"] = ask(
            "support", first, "Where is order 4711?", [call, "It is on its way."], tools=[look_up_order]
        )
        ids["v2"] = ask("support", second, "Where is my parcel?", ["It is late, sorry."])
        refused = Reply("no such model", status=400)
        ids["failed"] = ask("support", second, "Are you there?", [refused])
        ids["bad"] = verdict(ids["v1"], 0.2, "empathy - nobody says sorry", "accuracy - no date")
        ids["good"] = verdict(ids["v2"], 0.9, "accuracy - all is so")
        about = {"tenant": "acme", "count": 42, "text": "42", "beta": True, "none": None, "a.b": "dotted"}
        ids["plain"] = ask("assistant", "Help.", "Capital of France?", ["Paris."], metadata=about)
        ids["wide"] = ask("天気予報", "Help.", WIDE, ["晴れです。"])
        items = [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "And the second question?"},
        ]
        ids["items"] = ask("assistant", "Help.", items, ["Yes."])
        with agents.trace("request") as outer:
            ask("inner", second, "Inside a trace?", ["Inside."])
        ids["open"] = outer.trace_id
    return Recorded(path, ids)


def record_mixed(path: Path) -> Recorded:
    """Record runs that were fine, failed, recovered, and called a tool that the rules hide or refuse."""
    call = ScriptedToolCall("look_up_order", {"order_id": "4711"})
    ids: dict[str, str] = {}
    with recording(path):
        ids["fine"] = ask("a", "Help.", "Fine?", ["Fine."])
        ids["failed"] = ask("a", "Help.", "Are you there?", [Reply("no such model", status=400)])
        ids["recovered"] = ask(
            "a", "Help.", "Try.", [ScriptedToolCall("_broken"), "Never mind."], tools=[_broken]
        )
        for name, rules in (
            ("hidden", {"deny": ["look_up_order"]}),
            ("refused", {"params": {"look_up_order": {"order_id": {"maxLength": 1}}}}),
        ):
            replies = [call, "Never mind."]
            ids[name] = ask(
                "a", "Help.", "Where?", replies, context={"tool_rules": rules}, tools=[look_up_order]
            )
    return Recorded(path, ids)


def record_hostile(path: Path) -> Recorded:
    """Record a run with hostile texts, then replace the texts in the database that a run cannot set."""
    with recording(path):
        trace_id = ask(
            f"agent {MARKUP}",
            Prompt(f"prompt {STEERING}{MARKUP}", f"v1 {STEERING}", "Help."),
            HOSTILE,
            [ScriptedToolCall("echo", {"text": HOSTILE}), HOSTILE],
            tools=[agents.function_tool(_echo, name_override="echo")],
            metadata={f"key {STEERING}{MARKUP}\n": HOSTILE, "nested": {"a": [HOSTILE]}},
        )
        judge = verdict(trace_id, 0.1, HOSTILE, HOSTILE)
        failed = ask("support", "Help.", HOSTILE, [Reply(HOSTILE, status=400)])
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute("SELECT id, metadata_json FROM traces").fetchall()
        for trace, metadata in rows:
            half = {**json.loads(metadata), "half": HALF_A_PAIR, HALF_A_PAIR: 1}
            connection.execute("UPDATE traces SET metadata_json = ? WHERE id = ?", (json.dumps(half), trace))
        connection.execute("UPDATE traces SET workflow_name = ?, group_id = ?", (HOSTILE, HOSTILE))
        connection.execute("UPDATE spans SET name = ? WHERE span_type = 'agent'", (HOSTILE,))
        error = json.dumps({"message": f"{HALF_A_PAIR}{HOSTILE}", "data": {"x": HOSTILE}})
        connection.execute("UPDATE spans SET error_json = ? WHERE error_json != 'null'", (error,))
    return Recorded(path, {"hostile": trace_id, "judge": judge, "failed": failed})


def _broken() -> str:
    """Break down."""
    raise ConnectionError("gone")


def _echo(text: str) -> str:
    """Say it again."""
    return text
