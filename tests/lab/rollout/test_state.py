"""The state of a rollout in the database: its steps, its history, and what cannot be done."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import record_traces
from kantan_agents.errors import (
    InvalidOptionError,
    RolloutConflictError,
    RolloutNotFoundError,
    RolloutStepError,
    TraceDatabaseError,
)
from kantan_agents.lab import (
    history,
    promote,
    promote_async,
    rollouts,
    status,
    status_async,
    stop,
    stop_async,
)
from kantan_agents.lab.experiment.database import prepare_database
from kantan_agents.lab.rollout.state.change import start
from kantan_agents.lab.rollout.state.lease import LEASE_SECONDS, take_check
from kantan_agents.traces.database_url import as_place, path_of
from kantan_agents.traces.store.connection import changing
from tests.lab.rollout.trial import V1, V2, rollout


@pytest.fixture(params=["file", "postgres"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    is_file = request.param == "file"
    place = str(tmp_path / "traces.db") if is_file else request.getfixturevalue("postgres_traces_url")
    path = path_of(as_place(place))
    prepare_database(path)
    return path


def begun(path: Path, name: str = "r", **options: Any) -> None:
    start(path, name, rollout(**options).plan_for("support"))


def test_a_rollout_goes_up_its_ramp_step_by_step(path: Path) -> None:
    begun(path, ramp=(0.1, 0.5, 1))
    assert [(one.name, one.status, one.share) for one in rollouts(path)] == [("r", "running", 0.1)]
    assert (promote("r", path).share, promote("r", path, by="Mia", reason="fine").share) == (0.5, 1.0)
    (state,) = rollouts(path)
    assert (state.status, state.arm, state.step, state.revision) == ("promoted", "v2", 3, 3)
    assert [(one.action, one.author, one.share, one.arm) for one in history("r", path)] == [
        ("start", "code", 0.1, None),
        ("promote", "code", 0.5, None),
        ("promote", "Mia", 1.0, "v2"),
    ]
    assert history("support", path)[2].reason == "fine"
    assert history("r", path)[1].reason == "no run has ended yet"
    evidence = history("r", path)[1].evidence
    assert evidence is not None
    assert evidence["verdict"] == "continue"


def test_a_ramp_that_ends_below_1_still_ends_with_all_units(path: Path) -> None:
    begun(path, ramp=(0.0, 0.2))
    assert [promote("r", path).share for _ in range(2)] == [0.2, 1.0]
    assert rollouts(path)[0].status == "promoted"


def test_several_new_arms_grow_together_until_one_is_named(path: Path) -> None:
    begun(path, arms={"v1": V1, "v2": V2, "v3": "Be fast."}, ramp=(0.2, 0.6, 1))
    assert promote("r", path).share == 0.6
    with pytest.raises(RolloutStepError, match=r"E113.*all units get one arm now; name it: 'v2', 'v3'"):
        promote("r", path)
    assert promote("r", path, arm="v3").arm == "v3"


@pytest.mark.parametrize(
    ("arm", "said"),
    [("v9", "it has no arm 'v9'; its arms are 'v1', 'v2'"), ("v1", "'v1' is the control; stop the rollout")],
)
def test_only_a_new_arm_can_be_promoted(path: Path, arm: str, said: str) -> None:
    begun(path)
    with pytest.raises(RolloutStepError, match=said):
        promote("r", path, arm=arm)
    assert rollouts(path)[0].status == "running"
    assert len(history("r", path)) == 1


def test_a_rollout_that_is_over_cannot_be_promoted_but_stopped(path: Path) -> None:
    begun(path)
    promote("r", path, arm="v2")
    with pytest.raises(RolloutStepError, match="'v2' was promoted; start another one"):
        promote("r", path)
    assert stop("r", path, by="Mia", reason="complaints").status == "stopped"
    with pytest.raises(RolloutStepError, match="it is stopped already"):
        stop("r", path)
    with pytest.raises(RolloutStepError, match="it was stopped; start another one"):
        promote("r", path)
    assert [(one.action, one.reason) for one in history("r", path)][-1] == ("stop", "complaints")


def test_stopping_does_not_wait_for_the_evidence(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(path)

    def unreadable(*_: object) -> None:
        raise AssertionError("it must not be read")

    monkeypatch.setattr("kantan_agents.lab.rollout.steer.Samples", unreadable)
    assert stop("r", path).status == "stopped"


async def test_everything_can_be_awaited(path: Path) -> None:
    begun(path, ramp=(0.1, 0.5, 1))
    assert (await promote_async("r", path)).share == 0.5
    assert (await status_async("r", path)).state.share == 0.5
    assert (await stop_async("r", path)).status == "stopped"


@pytest.mark.parametrize("asked", [promote, stop, status, history])
def test_an_unknown_name_is_an_error_with_the_known_ones(path: Path, asked: Callable[..., Any]) -> None:
    with pytest.raises(RolloutNotFoundError, match=r"No rollout 'r' in .*; it has none"):
        asked("r", path)
    begun(path, "mine")
    with pytest.raises(RolloutNotFoundError, match="it has 'mine'"):
        asked("r", path)
    assert asked("support", path) is not None  # the name of its agent


@pytest.mark.parametrize("asked", [promote, stop, status, history])
def test_a_file_that_is_no_trace_database_is_an_error(tmp_path: Path, asked: Callable[..., Any]) -> None:
    foreign = tmp_path / "notes.txt"
    foreign.write_text("no database")
    with pytest.raises(TraceDatabaseError):
        asked("r", foreign)
    with pytest.raises(TraceDatabaseError):
        asked("r", tmp_path / "missing.db")
    with pytest.raises(InvalidOptionError):
        asked("r", 5)


def test_the_newest_running_rollout_of_an_agent_is_meant_by_its_name(path: Path) -> None:
    begun(path, "first")
    promote("first", path, arm="v2")
    begun(path, "second", arms={"v2": V2, "v3": "Be fast."})
    assert status("support", path).name == "second"
    stop("second", path)
    assert status("support", path).name == "second"


def test_a_second_rollout_waits_until_the_first_is_over(path: Path) -> None:
    begun(path, "first")
    with pytest.raises(RolloutConflictError, match="'first' of the agent 'support' is running; promote or"):
        begun(path, "second", arms={"v2": V2, "v3": "Be fast."})
    stop("first", path)
    begun(path, "second", arms={"v2": V2, "v3": "Be fast."})


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"arms": {"v1": V1, "v2": "Be quick."}}, "arms"),
        ({"ramp": (0.1, 1)}, "steps of its ramp"),
        ({"unit": "tenant"}, "units"),
        ({"metric": "rubric"}, "metrics"),
        ({"guards": {"error": 0.1}}, "guards"),
        ({"alpha": 0.01}, "levels of alpha"),
    ],
)
def test_a_rollout_cannot_change_what_it_compares(path: Path, changed: dict[str, Any], what: str) -> None:
    begun(path)
    with pytest.raises(RolloutConflictError, match=f"it began with other {what}.*another name"):
        begun(path, **changed)
    begun(path)  # the same again


def test_prices_may_change(path: Path) -> None:
    begun(path, prices={"m": (1, 2)})
    begun(path, prices={"m": (2, 3)})
    assert rollouts(path)[0].plan.prices.of_models == {"m": (2.0, 3.0)}


@pytest.mark.parametrize(
    "damage", ["plan = '{}'", "plan = 'x'", "status = 'paused'", "share = 7", "created_at = 'soon'"]
)
def test_a_damaged_row_is_named(path: Path, damage: str) -> None:
    begun(path)
    with changing(path) as connection:
        connection.execute(f"UPDATE kantan_agents_rollouts SET {damage}")
    with pytest.raises(TraceDatabaseError, match="the rollout 'r' is damaged"):
        rollouts(path)


def test_of_many_who_promote_at_once_each_makes_one_step(path: Path) -> None:
    steps = tuple(step / 40 for step in range(1, 41))
    begun(path, ramp=steps)
    with ThreadPoolExecutor(16) as pool:
        shares = list(pool.map(lambda _: promote("r", path).share, range(16)))
    assert sorted(shares) == list(steps[1:17])
    assert [one.share for one in history("r", path)] == list(steps[:17])


def test_hostile_texts_are_stored_as_they_are_and_secrets_masked(path: Path) -> None:
    name = "r'; DROP TABLE kantan_agents_rollouts; --"
    begun(path, name)
    stop(name, path, by="[red]x[/red]\x1b[31m", reason="key sk-proj-" + "a" * 40)
    change = history(name, path)[-1]
    assert change.author == "[red]x[/red]\x1b[31m"
    assert "a" * 40 not in change.reason


def test_only_one_process_checks_at_a_time_and_another_takes_over(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(path)
    now = [1_000_000.0]
    monkeypatch.setattr("kantan_agents.lab.rollout.state.lease.time.time", lambda: now[0])
    assert take_check(path, "r", "a")
    assert not take_check(path, "r", "b")
    now[0] += LEASE_SECONDS - 1
    assert not take_check(path, "r", "b")
    assert take_check(path, "r", "a")
    now[0] += LEASE_SECONDS + 1  # a has ended
    assert take_check(path, "r", "b")
    assert not take_check(path, "r", "a")
    now[0] -= 86_400  # the clock was set back: nobody must wait for a day
    assert take_check(path, "r", "a")
    assert not take_check(path, "other", "a")


def test_the_database_of_record_traces_is_the_default(path: Path) -> None:
    record_traces(path)
    begun(path)
    assert [one.name for one in rollouts()] == ["r"]
    assert stop("r").status == "stopped"
