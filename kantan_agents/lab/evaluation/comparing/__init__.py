"""Compares the scores of two variants, paired by case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.package_names import lazy_names

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation.comparing.all_of_k import PassesAll, passes_all
    from kantan_agents.lab.evaluation.comparing.compare_variants import compare
    from kantan_agents.lab.evaluation.comparing.comparison import Comparison, MetricComparison
    from kantan_agents.lab.evaluation.comparing.preference import preferred
    from kantan_agents.lab.evaluation.comparing.several_variants import Comparisons, compare_all

__all__ = [
    "Comparison",
    "Comparisons",
    "MetricComparison",
    "PassesAll",
    "compare",
    "compare_all",
    "passes_all",
    "preferred",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kantan_agents.lab.evaluation.comparing.several_variants": ("Comparisons", "compare_all"),
        "kantan_agents.lab.evaluation.comparing.compare_variants": ("compare",),
        "kantan_agents.lab.evaluation.comparing.comparison": ("Comparison", "MetricComparison"),
        "kantan_agents.lab.evaluation.comparing.all_of_k": ("PassesAll", "passes_all"),
        "kantan_agents.lab.evaluation.comparing.preference": ("preferred",),
    },
)
