"""A database in which every text of a model, a tool, a file or a person is an attack on its reader."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import attrs

from kantan_agents import RUBRIC, Agent, Prompt, TraceStore, record_traces
from kantan_agents.lab import (
    Case,
    Change,
    Cohort,
    Dataset,
    Evaluation,
    FinishedCase,
    Score,
    add_label,
    evaluate,
    evaluator,
    replay_cohort,
)
from kantan_agents.testing import OfflineServer, Reply, ScriptedModel, ScriptedToolCall

FLAG: Final = "kantanOwned"
"""The variable of the window that every script of ``ATTACK`` sets."""

_RUN: Final = f"window.{FLAG}=1"
_AWAY: Final = "http://127.0.0.1:9/leak"
ATTACK: Final = (
    f"<script>{_RUN}</script><img src={_AWAY} onerror={_RUN}><svg onload={_RUN}></svg>"
    f'<iframe src="javascript:parent.{FLAG}=1"></iframe><details open ontoggle={_RUN}>x</details>'
    f"</script></style></title></textarea></pre><script>{_RUN}</script>"
    f"\" autofocus onfocus={_RUN} x=\"' onmouseover='{_RUN}' {{{{ token }}}} ${{{_RUN}}} `{_RUN}`"
    f"<link rel=stylesheet href={_AWAY}><style>@import url({_AWAY})</style>"
    f"<base href={_AWAY}><meta http-equiv=refresh content=0;url={_AWAY}>"
    f"<a href=javascript:{_RUN}>a</a> [b](javascript:{_RUN}) ![c]({_AWAY}) javascript:{_RUN}"
    "\u202etxt.exe\u202c\u2066\ufeff\u2028\r\n\t\x1b[2J\x07\x9b"
)
LONG: Final = f"{ATTACK}{'x' * 1_000_000}{ATTACK}"
_TOOL: Final = "hostile_tool"


@attrs.frozen
class Hostile:
    """The database.

    Attributes:
        path: The file.
        traces: Ids of its traces: of a run with tool calls, of a long one, and of one that failed.
    """

    path: Path
    traces: tuple[str, str, str]


def hostile_tool(text: str) -> str:
    """Return what was given, and fail at the second call."""
    if text == "fail":
        raise RuntimeError(ATTACK)
    return text


def make(path: Path) -> Hostile:
    """Make the database by real runs, then put attacks where a run cannot have them."""
    found = (_tools(path), _ask(path, [LONG], LONG), _ask(path, [Reply(ATTACK, status=400)]))
    for version in ("1", "2"):
        _ask(path, [ATTACK], version=f"{ATTACK}{version}")
    _ask(
        path,
        [{"score": 0.1, "comments": [f"{ATTACK} - {ATTACK}"]}],
        output_type=RUBRIC,
        metadata={"judged_trace_id": found[0]},
    )
    _evaluate(path)
    _replay(path)
    _corrupt(path)
    return Hostile(path, found)


def _tools(path: Path) -> str:
    calls = [ScriptedToolCall(_TOOL, {"text": text}) for text in (ATTACK, "fail")]
    return _ask(path, [*calls, ATTACK], tools=[hostile_tool])


def _ask(
    path: Path, replies: list[Any], question: str = ATTACK, version: str = f"{ATTACK}1", **options: Any
) -> str:
    options.setdefault("metadata", {ATTACK.replace("\n", ""): ATTACK, "nested": {ATTACK: [ATTACK]}})
    recorder = record_traces(path)
    try:
        with OfflineServer(replies) as server:
            prompt = Prompt(ATTACK, version, f"{ATTACK} {version}")
            agent = Agent(ATTACK, prompt, model=server.bundle(), **options)
            try:
                agent.run(question, {})
            except Exception:  # noqa: BLE001 - the failed run is recorded, which is all that matters here
                assert isinstance(replies[0], Reply)
    finally:
        recorder.shutdown()
    return TraceStore(path).traces(limit=1)[0].trace_id


def _evaluate(path: Path) -> None:
    @evaluator(name=ATTACK, version="1")
    def judge(finished: FinishedCase) -> Score:
        return Score(0.5, label=ATTACK, comment=ATTACK)

    def agent(version: str) -> Agent[Any]:
        return Agent(
            ATTACK, Prompt(ATTACK, version, ATTACK), model=ScriptedModel(lambda _: f"{ATTACK}{version}")
        )

    items = [{"role": "user", "content": ATTACK}]
    cases = [
        Case(items, id=f"{ATTACK}{number}", context={ATTACK: ATTACK}, expected=ATTACK) for number in range(2)
    ]
    variants = {f"{ATTACK}{name}": agent(name) for name in "ab"}
    evaluate(variants, Dataset(ATTACK, cases), judge, name=ATTACK, store=path)
    evaluation = Evaluation.load(TraceStore(path), ATTACK)
    one = evaluation.results[0]
    add_label(
        evaluation, one.case_id, one.variant, one.repeat, ATTACK, 1.0, by=ATTACK, label=ATTACK, comment=ATTACK
    )


def _replay(path: Path) -> None:
    """Replay runs of the evaluation with another prompt, in an experiment."""
    model = ScriptedModel(lambda call: f"{ATTACK}{'changed' in str(call.system_instructions)}")
    agent = Agent(ATTACK, Prompt(ATTACK, f"{ATTACK}replayed", ATTACK), model=model)
    recorder = record_traces(path)
    try:
        agent.run(ATTACK)
        cohort = Cohort.select(TraceStore(path), version=f"{ATTACK}replayed", limit=1)
        change = Change.prompt(Prompt(ATTACK, f"{ATTACK}changed", f"{ATTACK}changed"))
        replay_cohort(cohort, agent, change, name=ATTACK)
    finally:
        recorder.shutdown()


def _corrupt(path: Path) -> None:
    """Rename the tool, and add NUL and halves of surrogate pairs."""
    tool, half = json.dumps(f"{ATTACK}\0\ud83d")[1:-1], json.dumps("\ud83d\0")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE spans SET name = ? WHERE name = ?", (f"{ATTACK}\0", _TOOL))
        for column in ("raw_json", "tool_calls_json", "structured_json"):
            connection.execute(f"UPDATE spans SET {column} = replace({column}, ?, ?)", (_TOOL, tool))
        connection.execute("UPDATE spans SET name = ? WHERE span_type IN ('agent', 'task')", (ATTACK,))
        error = json.dumps({"message": f"\ud83d\0{ATTACK}", "data": {ATTACK: ATTACK}})
        connection.execute("UPDATE spans SET error_json = ? WHERE error_json != 'null'", (error,))
        connection.execute(
            "UPDATE traces SET workflow_name = ?, group_id = ?, "
            "metadata_json = json_patch(metadata_json, json_object('half', json(?)))",
            (ATTACK, ATTACK, half),
        )
