"""What the runs of each prompt version have in common."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime

import attrs

from kantan_agents.tracing.metadata import JUDGE_SPAN
from kantan_agents.tracing.store.records import PromptStats
from kantan_agents.tracing.store.run_figures import PromptVersion, RunFigures, figures_of_runs
from kantan_agents.tracing.store.stored_spans import mapping_of
from kantan_agents.tracing.store.summarise import TOKENS
from kantan_agents.tracing.store.verdicts import Answers


@attrs.define
class _Group:
    """The runs of one version, added up one by one: there may be very many."""

    runs: int = 0
    failures: int = 0
    tokens: dict[str, int] = attrs.Factory(lambda: dict.fromkeys(TOKENS, 0))
    seconds: list[float] = attrs.Factory(list)
    scores: list[float] = attrs.Factory(list)
    first: datetime | None = None
    last: datetime | None = None

    def add(self, run: RunFigures) -> None:
        self.runs += 1
        self.failures += run.failed
        for kind, used in run.tokens.items():
            self.tokens[kind] += used
        if run.seconds is not None:
            self.seconds.append(run.seconds)
        start = run.started_at
        if start is not None:
            self.first = start if self.first is None else min(start, self.first)
            self.last = start if self.last is None else max(start, self.last)


def prompt_stats(connection: sqlite3.Connection, prompt: str | None) -> list[PromptStats]:
    """Return the figures of each version of each prompt, or of the prompt of that name.

    Versions of a prompt stand in the order of their first runs in the file.
    """
    groups: dict[PromptVersion, _Group] = {}
    for run in figures_of_runs(connection, prompt):
        if run.prompt not in groups:
            groups[run.prompt] = _Group()
        groups[run.prompt].add(run)
    for judged, score in _verdicts(connection):
        if judged not in groups and prompt in (None, judged[0]):
            groups[judged] = _Group()  # the judged runs are in another file, or were deleted
        if judged in groups:
            groups[judged].scores.append(score)
    return [_stats(*item) for item in sorted(groups.items(), key=lambda item: item[0][0])]


def nearest_rank(values: Iterable[float], percent: int) -> float | None:
    """Return the smallest value that at least ``percent`` % of all are not above; None without any."""
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1]


def _stats(prompt: PromptVersion, group: _Group) -> PromptStats:
    name, version = prompt
    return PromptStats(
        prompt_name=name,
        prompt_version=version,
        runs=group.runs,
        failures=group.failures,
        scores=len(group.scores),
        mean_score=math.fsum(group.scores) / len(group.scores) if group.scores else None,
        **group.tokens,
        latency_p50=nearest_rank(group.seconds, 50),
        latency_p95=nearest_rank(group.seconds, 95),
        first_run=group.first,
        last_run=group.last,
    )


def _verdicts(connection: sqlite3.Connection) -> Iterator[tuple[PromptVersion, float]]:
    """Yield the prompt of each judged answer, and the score."""
    answers = Answers(connection)
    rows = connection.execute(
        "SELECT id, trace_id, rubric_json FROM spans WHERE name = ? AND span_type = 'custom'", (JUDGE_SPAN,)
    )
    for row in rows.fetchall():
        score = mapping_of(row["rubric_json"]).get("score")
        if isinstance(score, (int, float)) and math.isfinite(score):
            judged = answers.judged_by(row["trace_id"], row["id"])
            if judged and judged.prompt:
                yield judged.prompt, float(score)
