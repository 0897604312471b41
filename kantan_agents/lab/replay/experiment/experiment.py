"""``Experiment``: what became of a cohort with a change, in sum and run by run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.experiment.prices import Figures
from kantan_agents.lab.replay.cohort import Skipped
from kantan_agents.lab.replay.experiment.outcome import STATUSES, RunOutcome
from kantan_agents.lab.replay.experiment.rows import ExperimentRow, read_experiments, read_runs
from kantan_agents.support.nearest import nearest
from kantan_agents.traces.store import TraceStore

_COVERED = ("same", "wording", "changed")


@attrs.frozen
class Experiment:
    """The runs of a cohort that were made again with something changed.

    ``load`` and ``load_all`` read what is stored, and ``to_dict`` returns it as JSON data. A result contains
    the input of the recorded run: it is deleted together with that run, and an experiment with its last
    result. If a recorder is active, new runs are recorded too, with ``kantan_agents_experiment`` and
    ``kantan_agents_replayed_run`` in their metadata; such a trace may be deleted without its result.

    Attributes:
        name: Its name; runs of the same name and hash are not made twice.
        hash: What identifies the changes and the changed agent.
        agent: Name of the agent.
        changes: What was changed, each on one line.
        created_at: When it was first started, in UTC.
        runs: The finished runs.
        skipped: The traces that were left out, each with the reason.
        planned: How many runs there are to make.
        stopped: The error that has stopped it before all runs were made; None if it is complete.
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
        """Whether all runs were made."""
        return self.stopped is None and len(self.runs) >= self.planned

    @property
    def counts(self) -> Mapping[str, int]:
        """How many runs ended in each way, by status."""
        found = Counter(run.status for run in self.runs)
        return {status: found[status] for status in STATUSES}

    @property
    def coverage(self) -> float | None:
        """The share of the runs that ran to their end without leaving the recording; None without runs."""
        return len(self.covered) / len(self.runs) if self.runs else None

    @property
    def covered(self) -> Sequence[RunOutcome]:
        """The runs that ran to their end without leaving the recording."""
        return [run for run in self.runs if run.status in _COVERED]

    @property
    def before(self) -> Figures:
        """What the recorded runs had used that correspond to ``covered``."""
        return _sum([run.before for run in self.covered])

    @property
    def after(self) -> Figures:
        """What the runs in ``covered`` have used, so that it can be compared with ``before``."""
        return _sum([run.after for run in self.covered])

    @property
    def spent(self) -> Figures:
        """What all runs have used, those that diverged or failed included."""
        return _sum([run.after for run in self.runs])

    @property
    def changed_decisions(self) -> Mapping[tuple[str, str, str], int]:
        """How many runs have each changed decision, by kind, agent and name; the most frequent first."""
        found: Counter[tuple[str, str, str]] = Counter()
        for run in self.runs:
            found.update({(one.kind, one.agent, one.name) for one in run.decisions})
        return dict(found.most_common())

    @property
    def new_calls(self) -> Mapping[tuple[str, str], int]:
        """How many runs have diverged at each tool, by agent and tool; the most frequent first."""
        calls = [run.new_call for run in self.runs if run.new_call is not None]
        return dict(Counter((call.agent, call.tool) for call in calls).most_common())

    def to_dict(self) -> dict[str, Any]:
        """Return the experiment as JSON data: all that the database has of it, and the sums."""
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
        """Return the newest experiment of this name from a database.

        Raises:
            InvalidOptionError: E75, there is none.
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
        """Yield all experiments of a database, the newest first, to list or export them.

            for experiment in Experiment.load_all(store):
                print(json.dumps(experiment.to_dict()))

        The runs of an experiment are read when it is yielded, so only those of one are in memory.

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
    """Return an experiment from its row and its runs; what is not given is as it was when it was started."""
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


def _sum(figures: Sequence[Figures]) -> Figures:
    if not figures:
        return Figures()
    total = figures[0]
    for one in figures[1:]:
        total += one
    return total
