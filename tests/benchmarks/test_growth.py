"""Growth curves: each does its work on both sides, and raises an error if work is skipped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.growth import CURVES, Curve, Growth, measure
from benchmarks.growth.checked_runs import CheckingModel, answered
from benchmarks.growth.curve import Sides
from benchmarks.growth.measuring import Effort, measure_curve
from benchmarks.growth.results import Point, to_json, to_markdown
from benchmarks.overhead import pair

SMALL = {"tools": 3, "rules": 3, "history": 3, "context": 3, "concurrency": 3}
EFFORT = Effort(batch=0.0, least=3, most=3, seconds=0.0)


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.name)
async def test_each_curve_does_its_work_at_its_smallest_size(curve: Curve, tmp_path: Path) -> None:
    async with curve.sides(curve.quick_sizes[0], tmp_path) as sides:
        assert await sides.ours(1) > 0
        assert (sides.other is None) == (curve.other is None)
        if sides.other is not None:
            assert await sides.other(1) > 0


@pytest.mark.parametrize(
    "curve", [curve for curve in CURVES if curve.name in SMALL], ids=lambda curve: curve.name
)
async def test_each_curve_measures_several_runs(curve: Curve, tmp_path: Path) -> None:
    async with curve.sides(SMALL[curve.name], tmp_path) as sides:
        await sides.ours(2)
        assert sides.other is not None
        await sides.other(2)


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.name)
def test_sizes_rise_by_a_factor_that_shows_growth(curve: Curve) -> None:
    for sizes in (curve.sizes, curve.quick_sizes):
        assert list(sizes) == sorted(set(sizes))
        assert len(sizes) > 1
        assert sizes[-1] >= 50 * max(1, sizes[0]) or sizes[-1] >= 10 * sizes[0] >= 1_000
    assert curve.quick_sizes[-1] <= curve.sizes[-1]


@pytest.mark.parametrize("side", [0, 1])
async def test_a_run_with_another_request_is_an_error(side: int) -> None:
    run = pair(CheckingModel(lambda _instructions, _input, tools: len(tools) == 1))[side]
    with pytest.raises(RuntimeError, match="1 items and 0 tools"):
        await run()


@pytest.mark.parametrize("side", [0, 1])
async def test_a_run_with_another_answer_is_an_error(side: int) -> None:
    class Silent(CheckingModel):
        def __init__(self) -> None:
            super().__init__(lambda *_request: True)
            self._text = ""

    with pytest.raises(RuntimeError, match="answered ''"):
        await answered(pair(Silent())[side])()


def curve_of(costs: dict[int, tuple[float, float | None]], asked: list[tuple[str, int]]) -> Curve:
    @asynccontextmanager
    async def sides(size: int, _folder: Path) -> AsyncIterator[Sides]:
        async def ours(_count: int) -> float:
            asked.append(("ours", size))
            return costs[size][0]

        async def other(_count: int) -> float:
            asked.append(("other", size))
            return costs[size][1] or 0.0

        yield Sides(ours, None if costs[size][1] is None else other, units=size)

    return Curve("made-up", "Made up", "things", "thing", tuple(costs), (1, 50), sides, "nothing else")


async def test_growth_is_the_cost_of_a_unit_at_the_largest_size_over_the_smallest(tmp_path: Path) -> None:
    curve = curve_of({1: (2.0, 1.0), 10: (10.0, 20.0), 100: (600.0, 400.0)}, [])
    growth = await measure_curve(curve, curve.sizes, tmp_path, EFFORT)
    assert growth.points == (Point(1, 2.0, 1.0), Point(10, 1.0, 2.0), Point(100, 6.0, 4.0))
    assert growth.ours == pytest.approx(3)
    assert growth.other == pytest.approx(4)


async def test_sides_and_ends_take_turns(tmp_path: Path) -> None:
    asked: list[tuple[str, int]] = []
    curve = curve_of({1: (1.0, 1.0), 10: (1.0, 1.0)}, asked)
    await measure_curve(curve, curve.sizes, tmp_path, EFFORT)
    ours, other, largest = ("ours", 1), ("other", 1), ("ours", 10)
    turns = [other, ours, ours, other, other, ours]
    assert any(asked[start : start + 6] == turns for start in range(len(asked)))
    assert asked[-6:] == [ours, largest, largest, ours, ours, largest]


async def test_a_curve_may_have_one_side(tmp_path: Path) -> None:
    curve = curve_of({1: (2.0, None), 10: (10.0, None)}, [])
    growth = await measure_curve(curve, curve.sizes, tmp_path, EFFORT)
    assert growth.ours == pytest.approx(0.5)
    assert growth.other is None
    assert [point.other for point in growth.points] == [None, None]


@pytest.fixture
def growths() -> list[Growth]:
    made_up = curve_of({1: (1.0, 1.0)}, [])
    return [
        Growth(made_up, (Point(1, 1e-3, 2e-3), Point(1_000, 4e-3, 4e-3)), 4.0),
        Growth(made_up, (Point(1, 1e-6), Point(1_000, 3e-6)), 3.0),
    ]


def test_json_has_every_point_the_growth_and_the_machine(growths: list[Growth]) -> None:
    read: dict[str, Any] = json.loads(to_json(growths, "this machine"))
    assert read["machine"] == "this machine"
    both, one = read["curves"]
    assert both["seconds"][1] == {"size": 1_000, "ours": 4e-3, "other": 4e-3}
    assert both["growth"] == {"ours": 4.0, "other": 2.0}
    assert one["growth"] == {"ours": 3.0, "other": None}


def test_markdown_has_a_table_for_each(growths: list[Growth]) -> None:
    text = to_markdown(growths, "this machine")
    assert "this machine" in text
    assert text.count("## Made up") == 2
    assert "| 1,000 | 4,000.0 | 4,000.0 | 1.00 |" in text
    assert "| growth | 4.00 | 2.00 | 2.00 |" in text


def test_nothing_is_written_without_an_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(measure(["context"], quick=True, output=None))
    assert "| growth |" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_tables_figures_and_a_picture_are_written(tmp_path: Path) -> None:
    asyncio.run(measure(["context", "get-agent"], quick=True, output=tmp_path / "results"))
    written = {path.name: path.read_bytes() for path in (tmp_path / "results").iterdir()}
    assert set(written) == {"growth.json", "growth.md", "growth.png"}
    assert written["growth.png"].startswith(b"\x89PNG")
    assert [curve["name"] for curve in json.loads(written["growth.json"])["curves"]] == [
        "context",
        "get-agent",
    ]


async def test_an_unknown_curve_is_rejected() -> None:
    with pytest.raises(ValueError, match="no such curves: wheels"):
        await measure(["context", "wheels"], quick=True, output=None)
