"""The output of ``eval run``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from kantan_agents.cli.traces.export import check_target
from kantan_agents.errors import FileArgumentError, NotComparableError
from kantan_agents.lab.evaluation import Comparison, Comparisons, Evaluation, compare, compare_all
from kantan_agents.lab.evaluation.comparing.comparison import Looks
from kantan_agents.lab.evaluation.report.junit import junit_xml
from kantan_agents.lab.evaluation.report.markdown import markdown_of_evaluation
from kantan_agents.lab.evaluation.report.variant_table import passes_of
from kantan_agents.support.replace_file import replace_file


@attrs.frozen
class FinishedEvaluation:
    """An evaluation, and its comparison, if possible."""

    evaluation: Evaluation
    comparison: Comparison | Comparisons | None

    @classmethod
    def of(cls, evaluation: Evaluation, looks: Looks | None) -> FinishedEvaluation:
        """Return an evaluation with its comparison."""
        first, *others = (evaluation[name] for name in evaluation.variants)
        try:
            if len(others) == 1:
                return cls(evaluation, compare(first, others[0], looks=looks))
            return cls(evaluation, compare_all(first, *others, looks=looks) if others else None)
        except NotComparableError:
            return cls(evaluation, None)

    def to_csv(self) -> str:
        """Return a row for each run."""
        return self.evaluation.to_csv()

    def to_markdown(self) -> str:
        """Return the verdict, if any, and the scores."""
        verdict = "" if self.comparison is None else f"{self.comparison.to_markdown()}\n"
        return verdict + markdown_of_evaluation(self.evaluation)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON data."""
        compared = None if self.comparison is None else self.comparison.to_dict()
        passes = [one.to_dict() for one in passes_of(self.evaluation)]
        return {**self.evaluation.to_dict(), "comparison": compared, "passes_all": passes}


def junit_target(junit: str, database: Path, dataset: Path) -> Path:
    """Return the JUnit file; called before any run."""
    target = check_target(junit, database, force=True)
    if target.exists() and dataset.exists() and target.samefile(dataset):
        raise FileArgumentError(path=junit, reason="it is the dataset")
    return target


def write_junit(target: Path, evaluation: Evaluation) -> None:
    """Write the runs as JUnit XML."""
    try:
        replace_file(target, junit_xml(evaluation))
    except OSError as error:
        raise FileArgumentError(path=str(target), reason=error.strerror or str(error)) from error
