"""Weights that make arms comparable although the share of the new one changes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kantan_agents.lab.betting.running import Earlier, Flags, Floats, running_mean


class Weighted(NamedTuple):
    """Unbiased estimates of the difference, with the least possible value of each."""

    values: Floats
    lowest: Floats
    scale: Floats


def weighted(
    outcomes: Floats,
    is_new: Flags,
    share: Floats,
    baseline: Floats,
    spread: Floats,
    *,
    lowest_new: float,
    highest_control: float,
) -> Weighted:
    """Return an estimate of the new arm's mean outcome minus the control's for each observation.

    With u the outcome, p the share and k the baseline, it is (u - k) / p for the new arm and -(u - k) / (1 -
    p) for the control: unbiased whatever k is, provided that k is known before the assignment. The variance
    is least at k = (1 - p) * E[u_new] + p * E[u_control].

    Source: Horvitz and Thompson, Journal of the American Statistical Association 47 (1952), for the weights;
    Robins, Rotnitzky and Zhao, Journal of the American Statistical Association 89 (1994), for the baseline;
    Karampatziakis, Mineiro and Ramdas, Off-policy confidence sequences, ICML 2021, for bets on weighted
    values.
    """
    centred = outcomes - baseline
    values = np.where(is_new, centred / share, -centred / (1.0 - share))
    lowest = np.minimum((lowest_new - baseline) / share, -(highest_control - baseline) / (1.0 - share))
    return Weighted(values, lowest, spread / np.sqrt(share * (1.0 - share)))


def running_spread(outcomes: Floats, baseline: Floats, extent: float, earlier: Earlier) -> Floats:
    """Return about the standard deviation around the baseline."""
    return np.sqrt(running_mean((outcomes - baseline) ** 2, extent**2 / 4.0, earlier))
