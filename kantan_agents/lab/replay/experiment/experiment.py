"""``Experiment``: the results of a cohort with a change, in total and run by run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.experiment.prices import UsageMetrics
from kantan_agents.lab.replay.cohort import Skipped
from kantan_agents.lab.replay.experiment.outcome import STATUSES, RunOutcome
from kantan_agents.lab.replay.experiment.rows import ExperimentRow, read_experiments, read_runs
from kantan_agents.support.nearest import nearest
from kantan_agents.traces.store import TraceStore

_COVERED = ("same", "wording", "changed")


@attrs.frozen
class Experiment:
    """The runs of a cohort that were replayed with a change.

    ``load`` and ``load_all`` read stored experiments; ``to_dict`` returns JSON data. A result contains the
    input of the recorded run and is deleted with it; an experiment is deleted with its last result. If a
    recorder is active, new runs are recorded too, with ``kantan_agents_experiment`` and
    ``kantan_agents_replayed_run`` in their metadata; such a trace may be deleted without its result.

    Attributes:
        name: Name of the experiment; finished runs with the same name and hash are not repeated.
        hash: Identifies the changes and the changed agent.
        agent: Name of the agent.
        changes: The changes, each on one line.
        created_at: Time of the first start, in UTC.
        runs: The finished runs.
        skipped: The omitted traces, each with the reason.
        planned: Number of planned runs.
        stopped: The error that stopped the experiment early; None if it is complete.
        live: Names of the tools that were allowed to run.
        simulate: Name of the agent that played tools; None without one.
    """

    name: str
    hash: str
    agent: str
    changes: Sequence[str]
    created_at: datetime
    runs: Sequence[RunOutcome]
    skipped: Sequence[Skipped] = ()
    planned: int = 0
    stopped: Exception | None = None
    live: Sequence[str] = ()
    simulate: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all planned runs are finished."""
        return self.stopped is None and len(self.runs) >= self.planned

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of runs by status."""
        found = Counter(run.status for run in self.runs)
        return {status: found[status] for status in STATUSES}

    @property
    def coverage(self) -> float | None:
        """The share of runs that finished without leaving the recording; None without runs."""
        return len(self.covered) / len(self.runs) if self.runs else None

    @property
    def covered(self) -> Sequence[RunOutcome]:
        """The runs that finished without leaving the recording."""
        return [run for run in self.runs if run.status in _COVERED]

    @property
    def before(self) -> UsageMetrics:
        """The usage of the recorded runs that correspond to ``covered``."""
        return _sum([run.before for run in self.covered])

    @property
    def after(self) -> UsageMetrics:
        """The usage of the runs in ``covered``, to compare with ``before``."""
        return _sum([run.after for run in self.covered])

    @property
    def spent(self) -> UsageMetrics:
        """The usage of all runs, including runs that diverged or failed."""
        return _sum([run.after for run in self.runs])

    @property
    def changed_decisions(self) -> Mapping[tuple[str, str, str], int]:
        """The number of runs with each changed decision, by kind, agent and name; most frequent first."""
        found: Counter[tuple[str, str, str]] = Counter()
        for run in self.runs:
            found.update({(one.kind, one.agent, one.name) for one in run.decisions})
        return dict(found.most_common())

    @property
    def new_calls(self) -> Mapping[tuple[str, str], int]:
        """The number of runs that diverged at each tool, by agent and tool; most frequent first."""
        calls = [run.new_call for run in self.runs if run.new_call is not None]
        return dict(Counter((call.agent, call.tool) for call in calls).most_common())

    def to_dict(self) -> dict[str, Any]:
        """Return the experiment as JSON data: all stored data, and the totals."""
        return {
            "name": self.name,
            "hash": self.hash,
            "agent": self.agent,
            "changes": list(self.changes),
            "live": list(self.live),
            "simulate": self.simulate,
            "created_at": self.created_at.isoformat(),
            "is_complete": self.is_complete,
            "stopped": None if self.stopped is None else str(self.stopped),
            "planned": self.planned,
            "counts": dict(self.counts),
            "coverage": self.coverage,
            "before": attrs.asdict(self.before),
            "after": attrs.asdict(self.after),
            "spent": attrs.asdict(self.spent),
            "changed_decisions": [
                {"kind": kind, "agent": agent, "name": name, "runs": count}
                for (kind, agent, name), count in self.changed_decisions.items()
            ],
            "new_calls": [
                {"agent": agent, "tool": tool, "runs": count}
                for (agent, tool), count in self.new_calls.items()
            ],
            "skipped": [attrs.asdict(one) for one in self.skipped],
            "runs": [run.to_dict() for run in self.runs],
        }

    @classmethod
    def load(cls, store: TraceStore, name: str) -> Experiment:
        """Return the latest experiment of this name from a database.

        Raises:
            InvalidOptionError: E75, the database has no such experiment.
            TraceDatabaseError: E60, the file cannot be read.
        """
        found = read_experiments(store.path, name)
        if not found:
            names = {row.name for row in read_experiments(store.path)}
            near = nearest(name, names)
            hint = f"; did you mean {near!r}?" if near is not None else ""
            reason = f"there is no experiment {name!r} in {store.path}{hint}"
            raise InvalidOptionError(option="name", reason=reason)
        return of_row(found[0], read_runs(store.path, found[0]))

    @classmethod
    def load_all(cls, store: TraceStore) -> Iterator[Experiment]:
        """Yield all experiments of a database, latest first, to list or export them.

            for experiment in Experiment.load_all(store):
                print(json.dumps(experiment.to_dict()))

        Only the runs of the current experiment are in memory.

        Raises:
            TraceDatabaseError: E60, the file cannot be read, or a row is damaged.
        """
        for row in read_experiments(store.path):
            yield of_row(row, read_runs(store.path, row))


def of_row(
    row: ExperimentRow,
    runs: Sequence[RunOutcome],
    *,
    skipped: Sequence[Skipped] | None = None,
    planned: int | None = None,
    stopped: Exception | None = None,
) -> Experiment:
    """Return an experiment from its row and its runs; defaults are stored values."""
    body = row.body
    stored = tuple(Skipped(**one) for one in body["skipped"])
    return Experiment(
        row.name,
        row.hash,
        body["agent"],
        tuple(body["changes"]),
        row.created_at,
        tuple(runs),
        stored if skipped is None else tuple(skipped),
        body["planned"] if planned is None else planned,
        stopped,
        tuple(body["live"]),
        body["simulate"],
    )


def _sum(figures: Sequence[UsageMetrics]) -> UsageMetrics:
    if not figures:
        return UsageMetrics()
    total = figures[0]
    for one in figures[1:]:
        total += one
    return total
