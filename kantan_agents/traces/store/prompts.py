"""The methods of ``TraceStore`` about prompts."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise

import attrs

from kantan_agents.core.usage import TOKENS
from kantan_agents.errors import PromptNotRecordedError
from kantan_agents.traces.capture import PromptRecord
from kantan_agents.traces.capture.diff_text import text_diff
from kantan_agents.traces.figure_tables import CHANGED, RUN_FIGURES, VERDICTS, has_figures
from kantan_agents.traces.store.figures import (
    PromptVersion,
    RunFigures,
    TraceFigures,
    Verdict,
    compute_figures,
)
from kantan_agents.traces.store.filters import check_text
from kantan_agents.traces.store.prompt_texts import PromptTexts, prompts_with_id, texts_by_version
from kantan_agents.traces.store.records import PromptStats
from kantan_agents.traces.store.search_service import SearchService
from kantan_agents.traces.store.span_records import parse_time

# For changed traces, the statistics are computed again.
_UNCHANGED = f"NOT EXISTS (SELECT 1 FROM main.{CHANGED} c WHERE c.trace_id = {{table}}.trace_id)"  # noqa: S608
_GROUPS = f"""SELECT r.prompt, r.version, COUNT(*), SUM(r.failed), SUM(r.input_tokens), SUM(r.output_tokens),
SUM(r.total_tokens), MIN(r.started_at), MAX(r.started_at), json_group_array(r.microseconds),
MIN((SELECT t.rowid FROM main.traces t WHERE t.id = r.trace_id)),
SUM(CASE WHEN r.failed = 0 AND r.microseconds IS NULL THEN 1 ELSE 0 END)
FROM main.{RUN_FIGURES} r WHERE r.prompt IS NOT NULL AND r.is_judge = 0
AND (:prompt IS NULL OR r.prompt = :prompt) AND {_UNCHANGED.format(table="r")}
GROUP BY r.prompt, r.version"""  # noqa: S608
_PLACE = f"""SELECT MIN(place) FROM main.{RUN_FIGURES} WHERE prompt = ? AND version IS ? AND is_judge = 0
AND trace_id = (SELECT t.id FROM main.traces t WHERE t.rowid = ?)"""  # noqa: S608
_FIRST_RUN = f"SELECT prompt, version FROM main.{RUN_FIGURES} WHERE trace_id = ? AND place = 0"  # noqa: S608
_SCORES = f"SELECT score, judged, prompt, version FROM main.{VERDICTS} v WHERE {_UNCHANGED.format(table='v')}"  # noqa: S608

_Position = tuple[float, float]
_NOWHERE: _Position = (math.inf, math.inf)


class PromptReader(SearchService):
    """Reads the prompts of a trace database in the calling thread."""

    def prompts(self, prompt: str | None = None) -> list[PromptStats]:
        """Compare the versions of all prompts, or of one, by their recorded runs.

        - Each run counts once, for the prompt of the agent that was started, wherever the run is: in its own
          trace, an open trace or another run. Agents that take over by a handoff belong to it.
        - Tokens are those that its own model calls used, without the runs inside it.
        - A run failed if it ended with an error; a tool error that it recovered from does not count. A run
          that has not ended is neither a success nor a failure.
        - Latencies cover runs that ended without an error, by nearest rank.
        - A verdict counts for the answer that the judge's ``judged_trace_id`` names, if that trace is in the
          file. Without this key, it counts for the run that contains it.

        Args:
            prompt: Name of the prompt; None for all.

        Returns:
            One record for each version, sorted by name, then by the first run of the version.

        Raises:
            TraceDatabaseError: E60, the file cannot be read.
        """
        if prompt is not None:
            check_text("prompt", prompt)
        with self._reading() as connection:
            return prompt_stats(connection, prompt)

    def prompt(self, prompt_id: str) -> PromptRecord:
        """Return a prompt with its text; if several share the id, the one whose first use is the latest.

        Args:
            prompt_id: ``prompt_id`` of a trace.

        Raises:
            PromptNotRecordedError: E87, no recorded run used a prompt with this id.
            TraceDatabaseError: E60, the file cannot be read.
        """
        check_text("prompt_id", prompt_id)
        with self._reading() as connection:
            found = prompts_with_id(connection, prompt_id)
        if not found:
            raise PromptNotRecordedError(prompt=prompt_id, path=str(self.path))
        return found[-1]

    def prompt_diff(self, prompt: str, old_version: str | None, new_version: str | None) -> str:
        """Return the unified diff between two versions of a prompt.

        If a version was edited, its latest text is compared. The same version twice gives the diffs between
        its successive edits.

        Args:
            prompt: Name of the prompt.
            old_version: A version; None for the version of plain str instructions.
            new_version: The version to compare it with.

        Returns:
            The diff without a trailing line break; empty if both are equal.

        Raises:
            PromptNotRecordedError: E87, no recorded run used one of the versions.
            TraceDatabaseError: E60, the file cannot be read.
        """
        check_text("prompt", prompt)
        for option, version in (("old_version", old_version), ("new_version", new_version)):
            if version is not None:
                check_text(option, version)
        with self._reading() as connection:
            found = texts_by_version(connection, prompt)
        for version in (old_version, new_version):
            if (prompt, version) not in found:
                named = f"{prompt} {version or 'without a version'}"
                raise PromptNotRecordedError(prompt=named, path=str(self.path))
        old, new = found[prompt, old_version].prompts, found[prompt, new_version].prompts
        pairs = pairwise(old) if old_version == new_version else [(old[-1], new[-1])]
        return "\n".join(filter(None, (_diff(*pair) for pair in pairs)))


@attrs.define
class _Group:
    """Running totals: a file may have very many runs.

    ``position`` is the rowid of its first run's trace, and the index of the run in it.
    """

    position: _Position = _NOWHERE
    runs: int = 0
    failures: int = 0
    unfinished: int = 0
    tokens: dict[str, int] = attrs.Factory(lambda: dict.fromkeys(TOKENS, 0))
    microseconds: list[int] = attrs.Factory(list)
    scores: list[float] = attrs.Factory(list)
    first: datetime | None = None
    last: datetime | None = None

    def add(self, run: RunFigures, position: _Position) -> None:
        self.position = min(position, self.position)
        self.runs += 1
        self.failures += run.failed
        self.unfinished += run.is_unfinished
        for kind, used in run.tokens.items():
            self.tokens[kind] += used
        if run.microseconds is not None:
            self.microseconds.append(run.microseconds)
        start = run.started_at
        if start is not None:
            self.first = start if self.first is None else min(start, self.first)
            self.last = start if self.last is None else max(start, self.last)


def prompt_stats(connection: sqlite3.Connection, prompt: str | None) -> list[PromptStats]:
    """Return the statistics of each version, in the order of first runs."""
    connection.execute("BEGIN")  # one state for the following statements
    is_kept = has_figures(connection)
    groups = _kept_groups(connection, prompt) if is_kept else {}
    changed = _changed(connection, is_kept=is_kept)
    first_runs: dict[str, PromptVersion | None] = dict.fromkeys(changed)
    verdicts: list[Verdict] = []
    for trace in compute_figures(connection, changed):
        _add_runs(groups, trace, prompt)
        verdicts += trace.verdicts
        first_runs[trace.trace_id] = trace.runs[0].prompt if trace.runs else None
    if is_kept:
        verdicts += (Verdict(row[0], row[1], _version(row[2], row[3])) for row in connection.execute(_SCORES))
    for verdict in verdicts:
        about = verdict.prompt
        if verdict.judged is not None:
            if is_kept and verdict.judged not in first_runs:
                row = connection.execute(_FIRST_RUN, (verdict.judged,)).fetchone()
                first_runs[verdict.judged] = _version(*row) if row else None
            about = first_runs.get(verdict.judged)
        if about is not None and prompt in (None, about[0]):
            # The judged runs may be in another file or deleted.
            groups.setdefault(about, _Group()).scores.append(verdict.score)
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], item[1].position, item[0][1] or ""))
    texts = texts_by_version(connection, prompt)
    return [_stats(*item, texts.get(item[0], PromptTexts(0, ()))) for item in ordered]


def _version(name: str | None, version: str | None) -> PromptVersion | None:
    return None if name is None else (name, version)


def _changed(connection: sqlite3.Connection, *, is_kept: bool) -> list[str]:
    query = f"SELECT trace_id FROM main.{CHANGED} WHERE typeof(trace_id) = 'text'"  # noqa: S608
    if not is_kept:
        query = "SELECT id FROM main.traces WHERE typeof(id) = 'text' ORDER BY rowid"
    return [row[0] for row in connection.execute(query)]


def _add_runs(groups: dict[PromptVersion, _Group], trace: TraceFigures, prompt: str | None) -> None:
    for place, run in enumerate(trace.runs):
        if run.prompt is not None and not run.is_judge and prompt in (None, run.prompt[0]):
            groups.setdefault(run.prompt, _Group()).add(run, (trace.position, place))


def _kept_groups(connection: sqlite3.Connection, prompt: str | None) -> dict[PromptVersion, _Group]:
    groups: dict[PromptVersion, _Group] = {}
    for name, version, *row in connection.execute(_GROUPS, {"prompt": prompt}).fetchall():
        runs, failures, *used, first, last, microseconds, position, unfinished = row
        (place,) = connection.execute(_PLACE, (name, version, position)).fetchone()
        groups[name, version] = _Group(
            position=(position, place),
            runs=runs,
            failures=failures,
            unfinished=unfinished,
            tokens=dict(zip(TOKENS, used, strict=True)),
            microseconds=[took for took in json.loads(microseconds) if took is not None],
            first=parse_time(first),
            last=parse_time(last),
        )
    return groups


def nearest_rank(values: Iterable[float], percent: int) -> float | None:
    """Return the smallest value that at least ``percent`` % do not exceed."""
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1]


def _stats(prompt: PromptVersion, group: _Group, texts: PromptTexts) -> PromptStats:
    name, version = prompt
    ordered = sorted(group.microseconds)
    return PromptStats(
        prompt_name=name,
        prompt_version=version,
        runs=group.runs,
        failures=group.failures,
        unfinished=group.unfinished,
        scores=len(group.scores),
        mean_score=math.fsum(group.scores) / len(group.scores) if group.scores else None,
        **group.tokens,
        latency_p50=_seconds(nearest_rank(ordered, 50)),
        latency_p95=_seconds(nearest_rank(ordered, 95)),
        first_run=group.first,
        last_run=group.last,
        texts=texts.count,
        prompts=texts.prompts,
    )


def _seconds(microseconds: float | None) -> float | None:
    return None if microseconds is None else microseconds / 1_000_000


def _diff(old: PromptRecord, new: PromptRecord) -> str:
    return text_diff(old.text, new.text, _label(old), _label(new))


def _label(prompt: PromptRecord) -> str:
    return f"{prompt.name} {prompt.version or ''}".rstrip() + f" ({prompt.id[:8]})"
