"""Writes the comparison of variants as one HTML page that needs nothing else."""

from kantan_agents.lab.evaluation.report.page import write_report
from kantan_agents.lab.evaluation.report.page_of_all import write_report_of_all

__all__ = ["write_report", "write_report_of_all"]
