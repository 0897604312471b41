"""An HTML file that shows recorded runs without a server, for a ticket or an e-mail."""

from kantan_agents.page.report.file import report_page, write_run_report

__all__ = ["report_page", "write_run_report"]
