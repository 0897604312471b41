"""Runs recorded runs again with something changed: real models, tools from the recording."""

from kantan_agents.lab.replay.experiment.experiment import Experiment
from kantan_agents.lab.replay.experiment.outcome import (
    ChangedDecision,
    Figures,
    NewCall,
    RunOutcome,
)
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
