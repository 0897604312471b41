"""Runs recorded runs again with something changed: real models, tools from the recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.package_names import lazy_names

if TYPE_CHECKING:
    from kantan_agents.lab.replay.experiment.experiment import Experiment
    from kantan_agents.lab.replay.experiment.outcome import ChangedDecision, Figures, NewCall, RunOutcome
    from kantan_agents.lab.replay.experiment.run_cohort import replay_cohort, replay_cohort_async

__all__ = [
    "ChangedDecision",
    "Experiment",
    "Figures",
    "NewCall",
    "RunOutcome",
    "replay_cohort",
    "replay_cohort_async",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kantan_agents.lab.replay.experiment.experiment": ("Experiment",),
        "kantan_agents.lab.replay.experiment.outcome": (
            "ChangedDecision",
            "Figures",
            "NewCall",
            "RunOutcome",
        ),
        "kantan_agents.lab.replay.experiment.run_cohort": ("replay_cohort", "replay_cohort_async"),
    },
)
