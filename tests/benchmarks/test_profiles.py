"""The profiles of a run add up and are reported by module."""

from __future__ import annotations

import json
from pathlib import Path

import agents
import pydantic
import pytest

import kantan_agents
from benchmarks.overhead import FakeModel, pair
from benchmarks.profiles import hand_offs, holdings, memory_table, module_of, shares, table


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (Path(agents.__file__ or "") / "../run_internal/run_loop.py", "agents/run_internal/run_loop.py"),
        (
            Path(kantan_agents.__file__) / "../agent/stages/call_sdk.py",
            "kantan_agents/agent/stages/call_sdk.py",
        ),
        (Path(pydantic.__file__ or "") / "../main.py", "pydantic"),
        (Path(json.__file__ or ""), "Python and others"),
        ("<string>", "Python and others"),
    ],
)
def test_a_file_is_named_by_its_module(file: Path | str, expected: str) -> None:
    assert module_of(str(file.resolve() if isinstance(file, Path) else file)) == expected


async def test_the_parts_of_a_run_add_up() -> None:
    plain, ours = pair(FakeModel("It is sunny."))
    (seconds, of_plain), (_, of_ours) = await shares([plain, ours], 3)
    assert seconds > 0
    assert sum(of_plain.values()) == pytest.approx(1)
    assert list(of_plain.values()) == sorted(of_plain.values(), reverse=True)
    assert not any(name.startswith("kantan_agents/") for name in of_plain)
    assert "kantan_agents/agent/stages/call_sdk.py" in of_ours
    assert "agents/run.py" in of_ours


async def test_unused_hand_off_targets_do_not_change_the_answer() -> None:
    plain, ours = hand_offs(3)
    assert (await plain()).final_output == "It is sunny."
    assert (await ours())["result"].final_output == "It is sunny."


async def test_the_memory_of_a_waiting_run_is_reported_by_module() -> None:
    plain, ours = await holdings(0, 20), await holdings(1, 20)
    assert plain["agents/run.py"] > 0
    assert ours["kantan_agents/agent/stages/call_sdk.py"] > 0
    # Not exactly 0: a thread of an earlier test, such as an idle recorder's, may allocate at the same time.
    own_of_plain, own = (
        sum(size for name, size in side.items() if name.startswith("kantan_agents/"))
        for side in (plain, ours)
    )
    assert own_of_plain < own / 10
    lines = list(memory_table({"a": 10.0, "b": 1.0}, {"b": 2.0, "kantan_agents/x.py": 3.0}))
    assert lines[4:] == [
        "| a | 10 | 0 |",
        "| b | 1 | 2 |",
        "| kantan_agents/x.py | 0 | 3 |",
        "| all of kantan_agents | 0 | 3 |",
        "| everything | 11 | 5 |",
        "",
    ]


def test_both_columns_are_shares_of_the_plain_run() -> None:
    plain = {"agents/run.py": 0.75, "Python and others": 0.25}
    ours = {"agents/run.py": 0.5, "kantan_agents/agent/agent.py": 0.5}
    lines = list(table("a run", plain, ours, 0.5))
    assert "whole run: 0.50 of the plain SDK" in lines[2]
    assert lines[4:] == [
        "| agents/run.py | 75% | 25% |",
        "| Python and others | 25% | 0% |",
        "| kantan_agents/agent/agent.py | 0% | 25% |",
        "| all of kantan_agents | 0% | 25% |",
        "",
    ]
