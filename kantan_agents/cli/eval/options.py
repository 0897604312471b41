"""The options that several commands of ``kantan-agents eval`` share."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

# Typer reads these annotations at run time; older versions do not support `X | None` on Python 3.10.
AArgument = Annotated[
    str,
    typer.Argument(metavar="A", help="The variant to compare with: its name, or EVALUATION:VARIANT."),
]
BArgument = Annotated[
    str,
    typer.Argument(metavar="B", help="The variant that the verdicts are about, named in the same way."),
]
EvaluationOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--evaluation",
        metavar="NAME",
        help="The evaluation that A and B belong to; by default the newest.",
        show_default=False,
    ),
]
MetricsOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--metric",
        metavar="METRIC",
        help="Compare by this metric only; may be repeated. Fewer metrics find smaller differences.",
        show_default=False,
    ),
]
EvaluationArgument = Annotated[
    str,
    typer.Argument(metavar="EVALUATION", help="The evaluation that `list` shows, or LAST for the newest."),
]
MetricOption = Annotated[
    str,
    typer.Option("--metric", metavar="NAME", help="What is judged, such as helpful.", show_default=False),
]
VariantOption = Annotated[
    Optional[list[str]],  # noqa: UP045 - Typer reads it at run time, on Python 3.10 too
    typer.Option(
        "--variant",
        metavar="NAME",
        help="Only results of this variant; may be repeated. By default those of all.",
        show_default=False,
    ),
]
