"""Reads the summaries of plain traces, which are most, with one statement.

A trace is plain if its run ended with an answer, and no span has an error, a verdict or a cut answer.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from kantan_agents.core.answers import CUT_SPAN
from kantan_agents.traces.metadata import JUDGE_SPAN
from kantan_agents.traces.store.records import TraceSummary
from kantan_agents.traces.store.runs import is_run
from kantan_agents.traces.store.span_records import parse_time
from kantan_agents.traces.tables import valid_json

_ENDING = "s.span_type = 'generation' AND s.name IS NULL AND s.parent_id IS NULL"
_IS_SPECIAL = f"""s.error_json != 'null'
OR s.span_type = 'custom' AND s.name IN ('{JUDGE_SPAN}', '{CUT_SPAN}')
OR s.usage_json IS NOT NULL AND NOT json_valid(s.usage_json)"""

# One object, because decoding two strings takes longer.
_JSON = f"""'{{{{"metadata":' || COALESCE({valid_json("t.metadata_json")}, 'null')
|| ',"usages":[' || COALESCE(group_concat(s.usage_json), '') || ']}}}}'"""

# Of several final spans, the last would count. MAX of one is its value, whatever its type.
_PLAIN = f"""SELECT t.id, t.workflow_name, t.group_id, {_JSON}, COUNT(*), MIN(s.started_at), MAX(s.ended_at),
MAX(CASE WHEN {_ENDING} THEN s.input END), MAX(CASE WHEN {_ENDING} THEN s.output END)
FROM traces t CROSS JOIN spans s ON s.trace_id = t.id WHERE t.id IN ({{ids}})
GROUP BY t.id
HAVING COUNT(CASE WHEN {_ENDING} THEN 1 END) = 1 AND COUNT(CASE WHEN {_IS_SPECIAL} THEN 1 END) = 0"""  # noqa: S608


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0


class _Facts(msgspec.Struct):
    metadata: dict[str, Any]
    usages: list[_Usage | None]


_decode_facts = msgspec.json.Decoder(_Facts).decode


def read_plain(connection: sqlite3.Connection, trace_ids: Sequence[str]) -> dict[str, TraceSummary]:
    """Return the summaries of plain traces by id."""
    found = [_summary(*row) for row in connection.execute(_query(len(trace_ids)), trace_ids)]
    return {summary.trace_id: summary for summary in found if summary is not None}


@cache
def _query(count: int) -> str:
    return _PLAIN.format(ids=",".join("?" * count))


def _summary(
    trace_id: str,
    workflow_name: str | None,
    group_id: str | None,
    metadata_and_usages: str,
    spans: int,
    first: str | None,
    last: str | None,
    given: str | None,
    answer: str | None,
) -> TraceSummary | None:
    try:
        facts = _decode_facts(metadata_and_usages)
    except (
        msgspec.MsgspecError,
        UnicodeEncodeError,
        RecursionError,
    ):  # such as a number with a fraction
        return None
    metadata = facts.metadata
    if not is_run(metadata):
        return None
    input_tokens, output_tokens, total_tokens = 0, 0, 0
    for usage in facts.usages:
        if usage is not None:
            input_tokens += usage.input_tokens
            output_tokens += usage.output_tokens
            total_tokens += usage.total_tokens
    return TraceSummary(
        trace_id=trace_id,
        workflow_name=workflow_name or "",
        group_id=group_id,
        metadata=metadata,
        started_at=parse_time(first),
        ended_at=parse_time(last),
        spans=spans,
        input=given,
        output=answer,
        error=None,
        failed_spans=0,
        rubric=None,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=total_tokens,
        cut_answers=0,
    )
