"""Statistics of evaluations: pure functions of arrays, which know nothing of agents.

Each docstring names its source. ``benchmarks/statistics.py`` measures how often intervals of means cover the
truth and how often tests raise a false alarm. Misuse is a ValueError; what cannot be known is None.
"""

from kantan_agents.lab.evaluation.statistics.agreement import (
    Agreement,
    Scale,
    cohens_kappa,
    krippendorff_alpha,
)
from kantan_agents.lab.evaluation.statistics.holm import holm
from kantan_agents.lab.evaluation.statistics.intervals import Interval, clopper_pearson, wilson
from kantan_agents.lab.evaluation.statistics.judge_rates import JudgeRates, Rate, judge_rates
from kantan_agents.lab.evaluation.statistics.mcnemar import McNemar, is_binary, mcnemar
from kantan_agents.lab.evaluation.statistics.paired_difference import PairedDifference, paired_difference
from kantan_agents.lab.evaluation.statistics.paired_test import PairedTest, paired_p
from kantan_agents.lab.evaluation.statistics.position_bias import PositionBias, position_bias
from kantan_agents.lab.evaluation.statistics.power import detectable_difference, more_cases
from kantan_agents.lab.evaluation.statistics.prediction_powered import (
    CorrectedMean,
    corrected_difference,
    corrected_mean,
)
from kantan_agents.lab.evaluation.statistics.proportion import Proportion, proportion
from kantan_agents.lab.evaluation.statistics.sign_flip import sign_flip_p
from kantan_agents.lab.evaluation.statistics.trend import Trend, drift, length_bias

__all__ = [
    "Agreement",
    "CorrectedMean",
    "Interval",
    "JudgeRates",
    "McNemar",
    "PairedDifference",
    "PairedTest",
    "PositionBias",
    "Proportion",
    "Rate",
    "Scale",
    "Trend",
    "clopper_pearson",
    "cohens_kappa",
    "corrected_difference",
    "corrected_mean",
    "detectable_difference",
    "drift",
    "holm",
    "is_binary",
    "judge_rates",
    "krippendorff_alpha",
    "length_bias",
    "mcnemar",
    "more_cases",
    "paired_difference",
    "paired_p",
    "position_bias",
    "proportion",
    "sign_flip_p",
    "wilson",
]
