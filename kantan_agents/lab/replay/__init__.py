"""Runs recorded runs again: as a test of an agent, or with something changed."""

import sys
from types import ModuleType
from typing import Any

from kantan_agents.lab.replay.again import record_again, record_again_async
from kantan_agents.lab.replay.change import Change
from kantan_agents.lab.replay.cohort import Cohort, Skipped
from kantan_agents.lab.replay.experiment import (
    ChangedDecision,
    Experiment,
    Figures,
    NewCall,
    RunOutcome,
    replay_cohort,
    replay_cohort_async,
)
from kantan_agents.lab.replay.recording import Recording
from kantan_agents.lab.replay.replaying import Replay, replay, replay_async

__all__ = [
    "Change",
    "ChangedDecision",
    "Cohort",
    "Experiment",
    "Figures",
    "NewCall",
    "Recording",
    "Replay",
    "RunOutcome",
    "Skipped",
    "record_again",
    "record_again_async",
    "replay",
    "replay_async",
    "replay_cohort",
    "replay_cohort_async",
]


class _CallableModule(ModuleType):
    """Callable, because ``from kantan_agents import replay`` finds this module if it was imported before."""

    def __call__(self, *arguments: Any, **options: Any) -> Replay:
        return replay(*arguments, **options)


sys.modules[__name__].__class__ = _CallableModule
