"""Recorded runs as an HTML file."""

from kantan_agents.page.report.file import report_page, write_run_report

__all__ = ["report_page", "write_run_report"]
