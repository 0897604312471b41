"""Writes the comparison of two variants as one HTML page that needs nothing else."""

from kantan_agents.lab.evaluation.report.page import write_report

__all__ = ["write_report"]
