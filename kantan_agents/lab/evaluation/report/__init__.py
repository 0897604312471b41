"""Reports of evaluations as tables, Markdown, JUnit XML and HTML pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.package_names import lazy_names

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation.report.page import write_report
    from kantan_agents.lab.evaluation.report.page_of_all import write_report_of_all

__all__ = ["write_report", "write_report_of_all"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kantan_agents.lab.evaluation.report.page": ("write_report",),
        "kantan_agents.lab.evaluation.report.page_of_all": ("write_report_of_all",),
    },
)
