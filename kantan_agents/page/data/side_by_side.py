"""Two runs step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

import attrs

from kantan_agents.page.data.cut_texts import as_text, cut
from kantan_agents.page.data.messages import messages_of
from kantan_agents.page.data.prompt_versions import changed_lines
from kantan_agents.page.data.run_table import run_row
from kantan_agents.traces.capture import ModelCallRecord, RunRecord, ToolCallRecord
from kantan_agents.traces.capture.compare_runs import parting
from kantan_agents.traces.store import StoredTrace, TraceStore


@attrs.frozen
class _Step:
    name: str
    text: str


def side_by_side(store: TraceStore, one: str, other: str) -> dict[str, Any]:
    """Return two runs, named as for ``store.trace``."""
    traces = store.trace(one), store.trace(other)
    records = _record(traces[0], one), _record(traces[1], other)
    steps = _paired(*(_steps(trace, record) for trace, record in zip(traces, records, strict=True)))
    return {
        "runs": [{**run_row(trace.summary), "missing": list(trace.missing)} for trace in traces],
        "steps": steps,
        "first": next((place for place, step in enumerate(steps) if not step["is_same"]), None),
        "parting": _parting(*records),
    }


def _record(trace: StoredTrace, wanted: str) -> RunRecord | None:
    """The run with the wanted id, otherwise the outermost one."""
    named = [run for run in trace.runs if run.id.startswith(wanted)]
    ids = {run.id for run in trace.runs}
    outermost = [run for run in trace.runs if run.parent_run not in ids]
    return next(iter((*named, *outermost)), None)


def _parting(one: RunRecord | None, other: RunRecord | None) -> dict[str, Any] | None:
    where = None if one is None or other is None else parting(one, other)
    if where is None:
        return None
    return {
        "call": where.call,
        "what": where.what,
        "differences": [
            # A short diff has no lines that name its sides.
            {"part": found.part, "kind": found.kind, "lines": changed_lines(f"\n\n{found.diff}")}
            for found in where.differences
        ],
    }


def _steps(trace: StoredTrace, record: RunRecord | None) -> list[_Step]:
    if record is None:
        summary = trace.summary
        return [_Step("input", summary.input or ""), _Step("output", summary.output or summary.error or "")]
    return [*_of_record(record)]


def _of_record(record: RunRecord) -> Iterator[_Step]:
    if record.input is not None:
        yield _Step("input", _said(record.input))
    instructions = None
    calls: list[ModelCallRecord | ToolCallRecord] = [*record.model_calls, *record.tool_calls]
    for call in sorted(calls, key=lambda call: call.started_at):
        if isinstance(call, ToolCallRecord):
            text = call.failure.message if call.output is None and call.failure else _plain(call.output)
            yield _Step(f"tool {call.tool.name}", f"{call.arguments}\n{text}")
            continue
        if call.request.instructions != instructions:
            instructions = call.request.instructions
            yield _Step("instructions", instructions or "")
        failed = call.answer is None and call.error is not None
        yield _Step("answer", call.error.message if failed and call.error else _answer(call))
    yield _Step("output", record.error.message if record.error else _plain(record.output))


def _answer(call: ModelCallRecord) -> str:
    return "" if call.answer is None else _said(call.answer.output)


def _said(items: Any) -> str:
    found = messages_of(items)
    if len(found) == 1 and found[0]["role"] in {"user", "assistant"}:
        return str(found[0]["text"]["text"])
    return "\n".join(
        f"{message['role']} {message.get('name', '')}".rstrip() + f": {message['text']['text']}"
        for message in found
    )


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else as_text(value)


def _paired(one: Sequence[_Step], other: Sequence[_Step]) -> list[dict[str, Any]]:
    names = [step.name for step in one], [step.name for step in other]
    found: list[dict[str, Any]] = []
    for kind, a, b, c, d in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
        if kind == "equal":
            found += (_pair(*both) for both in zip(one[a:b], other[c:d], strict=True))
        else:
            found += (_pair(step, None) for step in one[a:b])
            found += (_pair(None, step) for step in other[c:d])
    return found


def _pair(one: _Step | None, other: _Step | None) -> dict[str, Any]:
    known = one or other
    return {
        "name": known.name if known else "",
        "is_same": one is not None and other is not None and one.text == other.text,
        "texts": [None if step is None else cut(step.text) for step in (one, other)],
    }
