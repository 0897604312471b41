"""Statistics of evaluations: pure functions of arrays, independent of agents.

Each docstring names its source. ``benchmarks/statistics.py`` measures the coverage of the intervals and the
false alarms of the tests. Misuse raises ValueError; a value that cannot be computed is None.
"""

from kantan_agents.lab.evaluation.statistics.agreement import (
    Agreement,
    Scale,
    cohens_kappa,
    krippendorff_alpha,
)
from kantan_agents.lab.evaluation.statistics.any_look import (
    AnyLook,
    any_look,
    fewest_cases_at_any_look,
    more_cases_at_any_look,
)
from kantan_agents.lab.evaluation.statistics.holm import holm
from kantan_agents.lab.evaluation.statistics.intervals import Interval, clopper_pearson, wilson
from kantan_agents.lab.evaluation.statistics.judge_rates import JudgeRates, Rate, judge_rates
from kantan_agents.lab.evaluation.statistics.mcnemar import McNemar, is_binary, mcnemar
from kantan_agents.lab.evaluation.statistics.paired_difference import PairedDifference, paired_difference
from kantan_agents.lab.evaluation.statistics.paired_proportions import paired_proportions
from kantan_agents.lab.evaluation.statistics.paired_test import PairedTest, paired_interval, paired_p
from kantan_agents.lab.evaluation.statistics.position_bias import PositionBias, position_bias
from kantan_agents.lab.evaluation.statistics.power import detectable_difference, fewest_cases, more_cases
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
    "AnyLook",
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
    "any_look",
    "clopper_pearson",
    "cohens_kappa",
    "corrected_difference",
    "corrected_mean",
    "detectable_difference",
    "drift",
    "fewest_cases",
    "fewest_cases_at_any_look",
    "holm",
    "is_binary",
    "judge_rates",
    "krippendorff_alpha",
    "length_bias",
    "mcnemar",
    "more_cases",
    "more_cases_at_any_look",
    "paired_difference",
    "paired_interval",
    "paired_p",
    "paired_proportions",
    "position_bias",
    "proportion",
    "sign_flip_p",
    "wilson",
]
