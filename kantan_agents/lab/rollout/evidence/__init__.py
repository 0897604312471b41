"""Evidence about a new version while it is rolled out: pure functions of arrays.

All tests are anytime-valid: look after every observation, and stop whenever you like. There is one
observation for each random assignment, in the order of the assignments; `bets.strongest` adds later runs.
Each docstring names its source. ``benchmarks/rollout_statistics.py`` measures false alarms and the price in
sample size. Misuse raises ValueError; a value that cannot be computed is None.
"""

from kantan_agents.lab.betting.wealth import Evidence, log_e_process
from kantan_agents.lab.rollout.evidence.detectable import more_observations
from kantan_agents.lab.rollout.evidence.differences import mean_difference
from kantan_agents.lab.rollout.evidence.intervals import DifferenceInterval, difference_interval
from kantan_agents.lab.rollout.evidence.relative import relative_increase
from kantan_agents.lab.rollout.evidence.sample_ratio import sample_ratio
from kantan_agents.lab.rollout.evidence.tail import tail_increase

__all__ = [
    "DifferenceInterval",
    "Evidence",
    "difference_interval",
    "log_e_process",
    "mean_difference",
    "more_observations",
    "relative_increase",
    "sample_ratio",
    "tail_increase",
]
