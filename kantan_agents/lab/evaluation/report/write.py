"""``write_report``: writes the page of a comparison to a file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from kantan_agents.errors import FileArgumentError
from kantan_agents.lab.evaluation.comparing.comparison import Comparison
from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.experiment.results import VariantResults
from kantan_agents.lab.evaluation.report.page import comparison_page
from kantan_agents.support.arguments import checked_path
from kantan_agents.support.replace_file import replace_file


def write_report(
    comparison: Comparison,
    a: VariantResults,
    b: VariantResults,
    path: str | os.PathLike[str],
    *,
    cases: Iterable[Case] = (),
) -> None:
    """Write a comparison as one HTML page, which is replaced if it exists.

        comparison = compare(evaluation["v1"], evaluation["v2"])
        write_report(comparison, evaluation["v1"], evaluation["v2"], "report.html", cases=evaluation.cases)

    The page has verdicts, charts, and for each metric the cases that changed with both outputs. It needs no
    network and contains no script. The same arguments give the same bytes. Inputs and outputs are in it in
    clear text, so a new file is for its owner only; an existing one keeps its mode.

    Args:
        comparison: The comparison of ``a`` and ``b``.
        a: The results of the one variant.
        b: The results of the other.
        path: The file.
        cases: The cases, for their inputs and expected outputs: ``evaluation.cases``, or the dataset.

    Raises:
        FileArgumentError: E79, the file cannot be written.
    """
    place = Path(checked_path("path", path))
    page = comparison_page(comparison, a, b, cases)
    try:
        replace_file(place, page.encode(), is_private=True)
    except OSError as error:
        raise FileArgumentError(path=str(path), reason=error.strerror or str(error)) from error
