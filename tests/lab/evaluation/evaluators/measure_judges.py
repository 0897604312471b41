"""Measures the ready-made judges on the rows of ``labelled/``: how often do they agree with a person?

    python -m tests.lab.evaluation.evaluators.measure_judges gpt-6.1-terra correctness groundedness

The model is the judge, through its provider. The answers that are judged are those of the rows, given again
by an agent on this machine. The labels are one person's.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from kantan_agents import Agent, TraceStore, record_traces
from kantan_agents.lab import Case, Dataset, JudgeQuality, LabelQueue, evaluate, judge_quality
from kantan_agents.lab.evaluation.evaluators import judges
from kantan_agents.testing import OfflineServer, RecordedRequest

FOLDER = Path(__file__).with_name("labelled")
TOOLS: Mapping[str, str] = json.loads((FOLDER / "tools.json").read_text())
EVERYTHING = 1.0
"""A share passes if all parts hold."""


def rows_of(criterion: str) -> list[dict[str, Any]]:
    """Return the labelled rows of a criterion."""
    lines = (FOLDER / f"{criterion}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def measure(criterion: str, model: Any, store: TraceStore, **options: Any) -> JudgeQuality:
    """Return how well a judge agrees with the labels of its rows.

    Args:
        criterion: Name of the criterion.
        model: The model of the judge.
        store: The database that the runs are recorded to.
        **options: Further options of the judge.
    """
    rows = {row["id"]: row for row in rows_of(criterion)}
    cases = [
        Case(row["input"], id=row["id"], expected=row.get("expected"), context={"row": row["id"]})
        for row in rows.values()
    ]
    if criterion == "tool_choice":
        options["tools"] = TOOLS
    judge = judges.CRITERIA[criterion](model=model, **options)
    with OfflineServer(lambda request: _step(request, rows)) as server:
        agent = Agent(
            "recorded",
            "{{ $ctx.row }}",
            model=server.bundle(),
            tools=[_tool(name, rows) for name in (*TOOLS, "search")],
        )
        evaluation = evaluate(agent, Dataset(criterion, cases), judge, name=criterion, store=store)
    queue = LabelQueue.of(evaluation, criterion, by="author")
    while (item := queue.current) is not None:
        queue.label(item, rows[item.case_id]["person"])
    return judge_quality(evaluation, criterion, threshold=EVERYTHING)


def _calls(row: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the tool calls of a row; its sources are what one search returns."""
    if "sources" in row:
        found = json.dumps(row["sources"], ensure_ascii=False)
        return [{"tool": "search", "arguments": {"query": row["input"]}, "result": found}]
    calls: Sequence[Mapping[str, Any]] = row.get("calls", ())
    return calls


def _step(request: RecordedRequest, rows: Mapping[str, Mapping[str, Any]]) -> Any:
    """Answer as the recorded agent did."""
    row = rows[str(request.system_instructions)]
    done = sum(item.get("type") == "function_call_output" for item in request.input)
    calls = _calls(row)
    if done == len(calls):
        return row["output"]
    return {"tool": calls[done]["tool"], "arguments": calls[done]["arguments"]}


def _tool(name: str, rows: Mapping[str, Mapping[str, Any]]) -> FunctionTool:
    async def invoke(context: ToolContext[Any], _arguments: str) -> str:
        done = context.context.setdefault("done", 0)
        context.context["done"] = done + 1
        return str(_calls(rows[context.context["row"]])[done]["result"])

    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    return FunctionTool(name, TOOLS.get(name, "Search."), schema, invoke, strict_json_schema=False)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "traces.sqlite3"
        record_traces(database)
        for each in sys.argv[2:] or judges.CRITERIA:
            found = measure(each, sys.argv[1], TraceStore(database))
            print(each, found.true_positive.text, found.true_negative.text, sep="\n", end="\n\n")
