"""False alarms and power with a known truth, as ``benchmarks/rollout_statistics.py`` measures them.

``KANTAN_AGENTS_SIMULATIONS=10`` makes ten times as many rollouts.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from benchmarks import rollout_statistics
from benchmarks.rollout_situations import GUARDS, SHARES
from benchmarks.rollout_statistics import ALPHA, effects, guard_alarms, interval_misses, price, ratio_alarms
from tests.sizes import size

REPEATS = size(120, 60) * int(os.environ.get("KANTAN_AGENTS_SIMULATIONS", "1"))
MOST = ALPHA + 3.0 * np.sqrt(ALPHA * (1 - ALPHA) / REPEATS)

each_share = pytest.mark.parametrize("shares", SHARES)
with_drift = pytest.mark.parametrize("drifts", [False, True], ids=["steady", "drifts"])


@each_share
@with_drift
@pytest.mark.parametrize(
    "number", range(len(GUARDS)), ids=[f"{guard.name}, {guard.metric.name}" for guard in GUARDS]
)
def test_false_alarms_are_rare_if_one_looks_after_every_unit(number: int, shares: str, drifts: bool) -> None:
    assert guard_alarms(number, shares, drifts, REPEATS).evidence <= MOST


@each_share
@with_drift
def test_the_interval_hardly_ever_leaves_the_truth_out(shares: str, drifts: bool) -> None:
    assert interval_misses(shares, drifts, REPEATS).evidence <= MOST


@each_share
def test_the_sample_ratio_rarely_raises_a_false_alarm(shares: str) -> None:
    assert ratio_alarms(shares, REPEATS).evidence <= MOST


def test_a_t_test_that_is_looked_at_often_raises_many() -> None:
    alarms = [guard_alarms(number, "50 %", False, REPEATS).t_test for number in range(4)]
    assert np.mean([one for one in alarms if one is not None]) > 3 * ALPHA


@pytest.mark.parametrize("number", [0, 2, 4, 6, 8, 10, 12, 14], ids=lambda number: effects()[number].name)
def test_looking_at_any_time_costs_at_most_three_times_the_sample_size(number: int) -> None:
    found = price(number, REPEATS // 2)
    assert found.half < found.most < 3.5 * found.fixed


def test_the_command_prints_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert rollout_statistics.main(["--quick", "--repeats", "4", "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "4 rollouts each" in printed
    assert "sample ratio" in printed
    assert "latency, 2 times, 1.2 allowed" in printed
    assert "100,000 observations" in printed
