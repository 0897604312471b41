"""Coverage and false alarms in situations with a known truth, as ``benchmarks/statistics.py`` measures them.

``KANTAN_AGENTS_SIMULATIONS=10`` makes ten times as many data sets.
"""

from __future__ import annotations

import os

import pytest

from benchmarks import statistics
from benchmarks.statistics import Row, rows
from tests.sizes import size

TIMES = int(os.environ.get("KANTAN_AGENTS_SIMULATIONS", "1"))
USUAL = size(300, 100)
REPEATS = {
    "paired difference, coverage": size(150, 50),
    "corrected mean, coverage": size(200, 100),
    "corrected rate, coverage": size(150, 100),
    "corrected difference, coverage": size(100, 60),
    "length, false alarms": size(120, 40),
    "any look, runs made again": size(60, 20),
    "power as stated": size(150, 40),
}
# Exact coverage is in test_paired_proportions.
PROMISED = [row for row in rows() if (row.least or row.most) and "exact" not in row.statistic]


@pytest.mark.parametrize("row", PROMISED, ids=lambda row: f"{row.statistic}: {row.situation}")
def test_the_promise_is_kept(row: Row) -> None:
    repeats = TIMES * REPEATS.get(row.statistic, USUAL)
    missed = {}
    for cases in row.sizes:
        share = row.simulate(repeats, cases)
        # More than three standard errors: with so many figures, some are farther than two by chance.
        if row.misses(share, repeats, errors=3.0):
            missed[cases] = share
    assert not missed


def test_a_worse_share_than_promised_is_a_miss() -> None:
    row = Row("coverage", "any", lambda _repeats, _size: 0.0, (30,), least=0.95)
    assert row.misses(0.93, 10_000)
    assert not row.misses(0.93, 100)
    alarms = Row("alarms", "any", lambda _repeats, _size: 0.0, (30,), most=0.05)
    assert alarms.misses(0.07, 10_000)
    assert not alarms.misses(0.04, 10_000)


def test_the_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert statistics.main(["--quick", "--repeats", "2", "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "2 data sets each" in printed
    assert "conversations" in printed
    assert "10,000 pairs" in printed
