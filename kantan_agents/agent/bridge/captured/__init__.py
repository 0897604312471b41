"""Captures the complete record of a run while it is running."""

from kantan_agents.agent.bridge.captured.run import RunCapture, capture_run

__all__ = ["RunCapture", "capture_run"]
