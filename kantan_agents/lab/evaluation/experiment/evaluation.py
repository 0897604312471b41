"""The stored runs of a dataset with their scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs

from kantan_agents.errors import EvaluationNotFoundError
from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.experiment.results import Better, CaseResult, VariantResults, rows_of
from kantan_agents.lab.evaluation.experiment.rows import (
    EvaluationRow,
    read_cases,
    read_evaluations,
    read_results,
)
from kantan_agents.lab.evaluation.experiment.spent import read_spent
from kantan_agents.lab.evaluation.experiment.tables import CASES, RESULTS
from kantan_agents.lab.experiment.flat_rows import Row, Tabular
from kantan_agents.lab.experiment.prices import UsageMetrics
from kantan_agents.support.nearest import nearest
from kantan_agents.traces.store import TraceStore
from kantan_agents.traces.store.connection import reading


@attrs.frozen(slots=False, eq=False)
class Evaluation(Tabular):
    """Runs of one or more variants on the cases of a dataset, with their scores.

    The results are in the trace database and are loaded on first access.

    Attributes:
        path: The database.
        row: Its stored row.
        stopped: The error that stopped it before all runs; None if it is complete.
    """

    path: Path
    row: EvaluationRow = attrs.field(repr=False)
    stopped: Exception | None = None

    @classmethod
    def load(cls, store: TraceStore, name: str) -> Evaluation:
        """Return the evaluation with this name.

        Raises:
            EvaluationNotFoundError: E104, the name is unknown.
            TraceDatabaseError: E60, the file cannot be read.
        """
        for row in read_evaluations(store.path, name):
            return cls(store.path, row)
        raise _missing(name, [row.name for row in read_evaluations(store.path)], store.path)

    @classmethod
    def load_all(cls, store: TraceStore) -> list[Evaluation]:
        """Return all evaluations, the latest first.

        Raises:
            TraceDatabaseError: E60, the file cannot be read.
        """
        return [cls(store.path, row) for row in read_evaluations(store.path)]

    @property
    def name(self) -> str:
        """Its name."""
        return self.row.name

    @property
    def dataset(self) -> str:
        """Name of the dataset."""
        return str(self.row.body["dataset"]["name"])

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the variants."""
        return tuple(self.row.body["variants"])

    @property
    def repeats(self) -> int:
        """Number of runs of each case."""
        return int(self.row.body["repeats"])

    @property
    def planned(self) -> int:
        """Number of runs that its last start needed."""
        return int(self.row.body["planned"])

    @property
    def better(self) -> Mapping[str, Better]:
        """For each evaluator, whether a higher or a lower score is better."""
        return {name: one["better"] for name, one in self.row.body["evaluators"].items()}

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that have scores, in the order in which they first occur."""
        return tuple(dict.fromkeys(metric for one in self.results for metric in one.scores))

    @cached_property
    def results(self) -> tuple[CaseResult, ...]:
        """One result for each run, in the order of the cases, the repeats and the variants.

        Raises:
            TraceDatabaseError: E60, the file cannot be read.
        """
        names = {one["hash"]: name for name, one in self.row.body["variants"].items()}
        places = {tuple(case): place for place, case in enumerate(self.row.body["cases"])}
        order = {name: place for place, name in enumerate(self.variants)}
        found: list[tuple[tuple[int, int, int], CaseResult]] = []
        for _, variant_hash, result in read_results(self.path, self.row):
            place = places.get((result.case_id, result.case_hash))
            name = names.get(variant_hash)
            if place is not None and name is not None and result.repeat < self.repeats:
                key = (place, result.repeat, order[name])
                found.append((key, attrs.evolve(result, variant=name)))
        found.sort(key=lambda one: one[0])
        return tuple(result for _, result in found)

    @cached_property
    def spent(self) -> Mapping[str, Mapping[str, UsageMetrics]]:
        """For each variant, the usage of its runs (``"runs"``) and of each of its judges in all starts.

        Evaluators that called no model are missing, and so are judges of earlier versions of this library.

        Raises:
            TraceDatabaseError: E60, the file cannot be read.
        """
        names = {one["hash"]: name for name, one in self.row.body["variants"].items()}
        found: dict[str, dict[str, UsageMetrics]] = {name: {} for name in self.variants}
        for (variant_hash, spender), used in read_spent(self.path, self.row).items():
            if variant_hash in names:
                found[names[variant_hash]][spender or "runs"] = used
        return found

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases with results, in the order of the dataset.

        Raises:
            TraceDatabaseError: E60, the file cannot be read.
        """
        stored = read_cases(self.path, self.row)
        keys = (tuple(case) for case in self.row.body["cases"])
        return tuple(stored[key] for key in keys if key in stored)

    def __getitem__(self, variant: str) -> VariantResults:
        """Return the results of a variant.

        Raises:
            EvaluationNotFoundError: E104, the variant is missing.
        """
        self.hash_of(variant)
        results = tuple(one for one in self.results if one.variant == variant)
        is_grown = bool(self.row.body.get("grown"))
        return VariantResults(self.name, variant, results, self.better, self.path, is_grown)

    def hash_of(self, variant: str) -> str:
        """Return a hash that identifies the definition of a variant.

        Raises:
            EvaluationNotFoundError: E104, the variant is missing.
        """
        if variant not in self.variants:
            raise _missing(f"{self.name}[{variant}]", self.variants, self.path)
        return str(self.row.body["variants"][variant]["hash"])

    def __len__(self) -> int:
        return len(self.results)

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        """The failed runs."""
        return tuple(one for one in self.results if one.status == "failed")

    def rows(self) -> list[Row]:
        """Return a row for each run; see ``Tabular.rows``."""
        return rows_of(self.results)

    def to_dict(self) -> dict[str, Any]:
        """Return it with all results as JSON data."""
        return {
            "name": self.name,
            "created_at": self.row.created_at.isoformat(),
            **{key: value for key, value in self.row.body.items() if key != "cases"},
            "planned": self.planned,
            "stopped": None if self.stopped is None else str(self.stopped),
            "spent": {
                variant: {
                    spender: {name: getattr(used, name) for name in ("input_tokens", "output_tokens", "cost")}
                    for spender, used in by_spender.items()
                }
                for variant, by_spender in self.spent.items()
            },
            "results": [one.to_dict() for one in self.results],
        }


@attrs.frozen
class RunCounts:
    """Numbers of runs of an evaluation."""

    cases: int
    finished: int
    failed: int


def count_runs(evaluation: Evaluation) -> RunCounts:
    """Count the runs of the current cases and variants."""
    row = evaluation.row
    wanted = {tuple(case) for case in row.body["cases"]}
    variants = {one["hash"] for one in row.body["variants"].values()}
    counts = {"finished": 0, "failed": 0}
    with reading(evaluation.path, by_trace=False, with_views=False) as connection:
        query = f"""SELECT c.case_id, c.case_hash, r.variant_hash, r.repeat, r.status
        FROM {RESULTS} r JOIN {CASES} c ON c.id = r.case_row WHERE r.evaluation = ?"""  # noqa: S608
        for case_id, case_hash, variant, repeat, status in connection.execute(query, (row.id,)):
            if (case_id, case_hash) in wanted and variant in variants and repeat < evaluation.repeats:
                counts[status] += 1
    return RunCounts(len(wanted), **counts)


def _missing(name: str, known: Iterable[str], path: Path) -> EvaluationNotFoundError:
    listed: Sequence[str] = list(known)
    near = nearest(name, listed)
    if near is not None:
        reason = f"did you mean {near!r}?"
    else:
        reason = f"there are {', '.join(map(repr, listed[:5]))} in {path}" if listed else f"{path} has none"
    return EvaluationNotFoundError(name=name, reason=reason)
