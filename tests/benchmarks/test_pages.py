"""A full run writes its results into the page that shows them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.growth import CURVES, Curve
from benchmarks.growth.results import Growth, Point, to_markdown
from benchmarks.pages import whole, with_results, written_page
from benchmarks.peers.catalog import WORKLOADS
from benchmarks.peers.compared import CONTROL, OURS, PLAIN
from benchmarks.peers.results import Cell, Results, Row
from benchmarks.peers.rounds import Spread
from benchmarks.peers.table import markdown

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS = REPOSITORY / "benchmarks" / "results"
PAGE = "before\n<!-- results of python -m benchmarks -->\nold\n<!-- end of results -->\nafter\n"


def results() -> Results:
    ratio = Spread(0.8, 0.9, 1.0)
    cells = {PLAIN: Cell(value=Spread(1e-3, 2e-3, 3e-3)), OURS: Cell(Spread(1e-3, 2e-3, 3e-3), ratio)}
    rows = tuple(Row(name, cells, Spread(1.0, 1.0, 1.0)) for name in ("one_turn", "construct_0"))
    return Results("2026-01-02", "a machine", 21, 3, {PLAIN: {"a": "1"}, OURS: {"b": "2"}}, {}, rows)


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.name)
def test_every_curve_is_explained(curve: Curve) -> None:
    page = (REPOSITORY / "docs/performance.md").read_text(encoding="utf-8")
    _, found, explained = page.partition(f"(`{curve.name}`). ")
    assert found
    assert len(explained.split("\n- ")[0]) > len("Flat.")


def test_results_are_written_between_their_marks_and_nothing_else_changes() -> None:
    page = with_results(PAGE, "\nnew\n\n")
    assert page == PAGE.replace("old", "new")
    assert with_results(page, "old") == PAGE


@pytest.mark.parametrize("page", ["no mark", PAGE.replace("end of", "rest of"), PAGE.replace("-m", "-c")])
def test_a_page_without_the_marks_is_an_error(page: str) -> None:
    with pytest.raises(ValueError, match=r"python -m benchmarks --> and then <!-- end of results"):
        with_results(page, "new")


def test_the_page_of_the_repository_has_the_marks(tmp_path: Path) -> None:
    performance = written_page(results(), copied(tmp_path)).read_text(encoding="utf-8")
    assert whole(results()).strip() in performance
    assert "| making an agent |" in performance
    assert CONTROL not in performance


def copied(folder: Path) -> Path:
    """Return ``folder`` with the page in it."""
    (folder / "docs").mkdir()
    shutil.copyfile(REPOSITORY / "docs/performance.md", folder / "docs/performance.md")
    return folder


def test_the_published_tables_are_the_measured_ones(tmp_path: Path) -> None:
    published = Results.from_json((RESULTS / "peers.json").read_text(encoding="utf-8"))
    assert (RESULTS / "peers.md").read_text(encoding="utf-8") == markdown(published)
    assert (published.is_quick, dict(published.left_out), dict(published.failed)) == (False, {}, {})
    assert [row.workload for row in published.rows] == [workload.id for workload in WORKLOADS]
    path = written_page(published, copied(tmp_path))
    here = REPOSITORY / path.relative_to(tmp_path)
    assert path.read_text(encoding="utf-8") == here.read_text(encoding="utf-8")


def test_every_picture_of_the_results_is_shown() -> None:
    page = (REPOSITORY / "docs/performance.md").read_text(encoding="utf-8")
    pictures = sorted(picture.name for picture in RESULTS.glob("*.png"))
    assert pictures == ["growth.png", "lag.png", "peers.png"]
    assert [name for name in pictures if f"](../benchmarks/results/{name})" not in page] == []


def test_the_published_curves_are_the_measured_ones() -> None:
    data = json.loads((RESULTS / "growth.json").read_text(encoding="utf-8"))
    by_name = {curve.name: curve for curve in CURVES}
    growths = [
        Growth(
            by_name[curve["name"]],
            tuple(Point(**point) for point in curve["seconds"]),
            curve["growth"]["ours"],
        )
        for curve in data["curves"]
    ]
    assert [growth.curve.name for growth in growths] == [one.name for one in CURVES if one.is_published]
    table = (RESULTS / "growth.md").read_text(encoding="utf-8")
    assert table == to_markdown(growths, data["machine"])
