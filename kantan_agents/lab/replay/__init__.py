"""Runs recorded runs again: as a test of an agent, or with something changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.package_names import lazy_names, make_callable

if TYPE_CHECKING:
    from kantan_agents.lab.experiment.prices import UsageMetrics
    from kantan_agents.lab.replay.change import Change
    from kantan_agents.lab.replay.cohort import Cohort, Skipped
    from kantan_agents.lab.replay.experiment.experiment import Experiment
    from kantan_agents.lab.replay.experiment.outcome import ChangedDecision, NewCall, RunOutcome
    from kantan_agents.lab.replay.experiment.run_cohort import replay_cohort, replay_cohort_async
    from kantan_agents.lab.replay.recording import Recording
    from kantan_agents.lab.replay.recording_again import record_again, record_again_async
    from kantan_agents.lab.replay.replaying import Replay, replay, replay_async

__all__ = [
    "Change",
    "ChangedDecision",
    "Cohort",
    "Experiment",
    "NewCall",
    "Recording",
    "Replay",
    "RunOutcome",
    "Skipped",
    "UsageMetrics",
    "record_again",
    "record_again_async",
    "replay",
    "replay_async",
    "replay_cohort",
    "replay_cohort_async",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kantan_agents.lab.experiment.prices": ("UsageMetrics",),
        "kantan_agents.lab.replay.change": ("Change",),
        "kantan_agents.lab.replay.cohort": ("Cohort", "Skipped"),
        "kantan_agents.lab.replay.experiment.experiment": ("Experiment",),
        "kantan_agents.lab.replay.experiment.outcome": ("ChangedDecision", "NewCall", "RunOutcome"),
        "kantan_agents.lab.replay.experiment.run_cohort": ("replay_cohort", "replay_cohort_async"),
        "kantan_agents.lab.replay.recording": ("Recording",),
        "kantan_agents.lab.replay.recording_again": ("record_again", "record_again_async"),
        "kantan_agents.lab.replay.replaying": ("Replay", "replay", "replay_async"),
    },
)

make_callable(__name__)
