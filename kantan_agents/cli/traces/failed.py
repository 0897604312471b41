"""``traces failed``: lists low verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kantan_agents.cli.terminal.console import terminal
from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.terminal.show_quantities import iso_time
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.cli.traces.view import failures_view

if TYPE_CHECKING:
    from kantan_llm.tracing import SpanRecord, TraceRecord


def list_failed(
    path: Path, *, threshold: float, prompt: str | None, version: str | None, limit: int | None, as_json: bool
) -> None:
    """Print the latest verdicts below ``threshold``."""
    store = open_store(path)
    from kantan_llm.tracing.analysis import group_failed_by_bucket

    failed = store.failed(threshold, prompt=prompt, version=version, limit=limit)
    buckets = group_failed_by_bucket(failed)
    judged = {span.trace_id: store.get_trace(store.judged(span.trace_id)) for span in failed}
    if as_json:
        typer.echo(json_text(failures_data(buckets, judged), default=str))
    elif failed:
        terminal().print(failures_view(buckets, judged))
    else:
        typer.echo(f"No verdict below {threshold:g} found.")


def failures_data(
    buckets: Mapping[str, Sequence[SpanRecord]], judged: Mapping[str, TraceRecord | None]
) -> list[dict[str, Any]]:
    """Return failed verdicts as flat objects."""
    from kantan_agents.traces.metadata import finite  # replaces NaN and infinities, which JSON lacks

    return [
        finite({"bucket": bucket, **_failure_data(span, judged.get(span.trace_id))})
        for bucket, spans in buckets.items()
        for span in spans
    ]


def _failure_data(span: SpanRecord, judged: TraceRecord | None) -> dict[str, Any]:
    rubric: Mapping[str, Any] = span.rubric or {}
    metadata = judged.metadata if judged and isinstance(judged.metadata, Mapping) else {}
    return {
        "score": rubric.get("score"),
        "comment": rubric.get("comment"),
        "rubric": dict(rubric),
        "judged_at": iso_time(span.ended_at),
        "judge_trace_id": span.trace_id,
        "judge_span_id": span.span_id,
        "trace_id": None if judged is None else judged.trace_id,
        **{key: metadata.get(key) for key in ("agent_name", "prompt_name", "prompt_version")},
    }
