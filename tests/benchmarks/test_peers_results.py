"""Results of a comparison, from made-up figures: JSON, the table, and the goals."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from benchmarks.peers.catalog import WORKLOADS
from benchmarks.peers.compared import OURS, PLAIN
from benchmarks.peers.goals import ahead, missed
from benchmarks.peers.output import write
from benchmarks.peers.results import Cell, Results, Row
from benchmarks.peers.rounds import Spread
from benchmarks.peers.table import markdown


def cell(ratio: float | None, value: float = 1e-4, late: tuple[float, float] | None = None) -> Cell:
    return Cell(
        value=Spread(value * 0.9, value, value * 1.1),
        ratio=None if ratio is None else Spread(ratio - 0.01, ratio, ratio + 0.01),
        late=late,
    )


def row(workload: str, ours: Cell, **peers: Cell) -> Row:
    return Row(workload, {PLAIN: cell(None), OURS: ours, **peers}, Spread(0.98, 1.0, 1.02))


def results(*rows: Row) -> Results:
    return Results(
        measured_on="2026-01-02",
        machine="a machine",
        repeats=21,
        generations=3,
        versions={
            PLAIN: {"openai-agents": "1.0"},
            OURS: {"kantan-agents": "2.0"},
            "langgraph": {"langgraph": "3.0"},
        },
        left_out={"pydantic_ai": "it cannot be installed: no such package"},
        rows=rows,
    )


MADE_UP = results(
    row("one_turn", cell(0.97), langgraph=cell(8.0)),
    row("structured", cell(0.80), langgraph=cell(0.5)),
    attrs.evolve(
        row("at_once_50", cell(1.0, late=(0.001, 0.02)), langgraph=cell(9.0, late=(0.003, 0.4))),
        control_late=(0.002, 0.01),
    ),
    row("construct_0", cell(1.0, 250e-6), langgraph=Cell(absent="It is never made.")),
    row("traced_empty", cell(1.05), langgraph=Cell(absent="It sends traces away.")),
)


def test_results_survive_json() -> None:
    assert Results.from_json(MADE_UP.to_json()) == MADE_UP


def test_missed_goals_and_peers_ahead_are_named_and_others_are_not() -> None:
    assert missed(MADE_UP) == (
        "structured: 0.800 times, the goal is 0.65",
        "structured: langgraph is ahead",
        "construct_0: 250.0 us, the goal is 100 us",
    )


def test_a_goal_is_met_up_to_its_last_digit() -> None:
    assert not missed(results(row("one_turn", cell(0.99))))
    assert missed(results(row("one_turn", cell(0.991))))
    assert not missed(results(row("construct_0", cell(5.0, 99e-6))))


def test_an_equally_fast_peer_is_not_ahead() -> None:
    assert ahead(row("one_turn", cell(0.9), langgraph=cell(0.9))) == ()
    assert ahead(row("one_turn", cell(0.9), langgraph=cell(0.89), pydantic_ai=cell(0.91))) == ("langgraph",)


def test_the_table_has_one_row_per_workload_and_marks_a_peer_that_is_ahead() -> None:
    text = markdown(MADE_UP)
    lines = {line.split(" | ")[0]: line for line in text.splitlines() if line.startswith("| ")}
    assert lines["| one turn"].endswith(
        "| 100 us (90-110) | 0.97 (0.96-0.98) | 8.00 | 1.00 (0.98-1.02) | 0.99, met |"
    )
    assert "| **0.50** |" in lines["| structured output"]
    assert "0.65, missed" in lines["| structured output"]
    assert "| 1.0 / 20.0 | 3.0 / 400.0 | 2.0 / 10.0 |" in text
    assert "250 us (225-275)" in lines["| making an agent"]
    assert "- making an agent, langgraph: It is never made." in text
    assert "pydantic-ai: it cannot be installed: no such package" in text
    assert "langgraph 3.0" in text


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.id)
def test_every_workload_can_be_shown(workload: object) -> None:
    name = attrs.asdict(workload)["id"]  # type: ignore[arg-type]  # it is one of attrs
    assert markdown(results(row(name, cell(2.0), langgraph=cell(3.0))))


def test_results_are_written_in_all_formats(tmp_path: Path) -> None:
    written = write(MADE_UP, tmp_path / "new")
    assert [path.name for path in written] == ["peers.json", "peers.md", "peers.png", "lag.png"]
    assert all(path.stat().st_size for path in written)
    assert Results.from_json(written[0].read_text(encoding="utf-8")) == MADE_UP


def test_rows_that_are_measured_again_replace_the_old_ones() -> None:
    again = row("structured", cell(0.4), langgraph=cell(0.5))
    newer = attrs.evolve(results(again), measured_on="2026-01-03")
    updated = MADE_UP.with_rows_of(newer)
    assert [each.workload for each in updated.rows] == [each.workload for each in MADE_UP.rows]
    assert [each for each in updated.rows if each not in MADE_UP.rows] == [again]
    assert updated.measured_on == "2026-01-02 and 2026-01-03"
    assert updated.with_rows_of(newer) == updated
    assert MADE_UP.with_rows_of(results()) == MADE_UP


def test_a_workload_that_failed_is_named_and_can_be_measured_later() -> None:
    failed = attrs.evolve(MADE_UP, failed={"tool_turn": "langgraph has ended with -9"})
    assert "- tool call and answer: langgraph has ended with -9" in markdown(failed)
    assert Results.from_json(failed.to_json()) == failed
    late = row("tool_turn", cell(0.4))
    whole = failed.with_rows_of(results(late))
    assert not whole.failed
    assert [each.workload for each in whole.rows][:3] == ["one_turn", "tool_turn", "structured"]
    again = attrs.evolve(results(), failed={"structured": "it died"})
    assert MADE_UP.with_rows_of(again) == MADE_UP


@pytest.mark.parametrize(
    ("field", "value"),
    [("machine", "another"), ("versions", {}), ("repeats", 9), ("generations", 1), ("left_out", {})],
)
def test_rows_that_are_measured_differently_are_rejected(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{field} differs: "):
        MADE_UP.with_rows_of(attrs.evolve(MADE_UP, **{field: value}))  # type: ignore[arg-type]


def test_a_row_that_is_not_published_needs_a_full_run() -> None:
    with pytest.raises(ValueError, match="no row tool_turn: a whole run"):
        MADE_UP.with_rows_of(results(row("tool_turn", cell(0.4))))
