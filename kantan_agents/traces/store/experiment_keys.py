"""Metadata keys of traces from an experiment."""

from __future__ import annotations

from typing import Final

EXPERIMENT_KEY: Final = "kantan_agents_experiment"
REPLAYED_KEY: Final = "kantan_agents_replayed_run"
