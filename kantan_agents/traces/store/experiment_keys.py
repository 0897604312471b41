"""Metadata keys of traces from an experiment."""

from __future__ import annotations

from typing import Final

EXPERIMENT_KEY: Final = "kantan_agents_experiment"
"""The name of the experiment."""
REPLAYED_KEY: Final = "kantan_agents_replayed_run"
"""The id of the run that it repeats."""
