"""``kantan-agents rollout``: status, promote, stop and history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent, record_traces
from kantan_agents.lab import record_score, rollouts
from tests.cli.conftest import Invoke
from tests.lab.rollout.trial import V1, V2, rollout, support, user


def served(path: Path, users: int = 40, **options: Any) -> Agent[Any]:
    """Record the runs of some users, half of whom have the new prompt."""
    recorder = record_traces(path)
    given = {"metric": "thumb", "guards": {"error": 0.02, "latency_p95": "+30%"}, **options}
    agent = support(rollout(path, **given))
    for number in range(users):
        context = agent.run("Hi", user(number))
        record_score(context, "thumb", number % 2, store=path)
    recorder.force_flush()
    return agent


@pytest.fixture
def db(tmp_path: Path) -> str:
    served(tmp_path / "traces.db")
    return str(tmp_path / "traces.db")


@pytest.fixture
def empty(tmp_path: Path) -> str:
    path = tmp_path / "empty.db"
    record_traces(path).shutdown()
    return str(path)


def test_the_status_shows_arms_guards_and_the_verdict(kantan_agents: Invoke, db: str) -> None:
    outcome = kantan_agents("rollout", "status", "support", "--db", db)
    assert (outcome.code, outcome.stderr) == (0, "")
    lines = outcome.stdout.splitlines()
    assert lines[0] == "support:v1-v2 of agent support: running"
    assert lines[1] == "ramp 50% > 100%, now 50%, step 0"
    assert lines[3].split()[:3] == ["arm", "share", "units"]
    rows = {line.split()[0]: line.split() for line in lines[4:6]}
    assert rows.keys() == {"v1", "v2"}
    assert sum(int(row[2]) for row in rows.values()) == 40
    assert any(line.startswith("thumb v2 against v1: ") for line in lines)
    assert sum("within, so far" in line for line in lines) == 2
    assert lines[-1].startswith("continue: cannot tell yet whether v2 is better than v1 on thumb")


def test_the_status_as_json_is_that_of_python(kantan_agents: Invoke, db: str) -> None:
    data = json.loads(kantan_agents("rollout", "status", "support:v1-v2", "--db", db, "--json").stdout)
    assert (data["rollout"], data["verdict"], data["status"]) == ("support:v1-v2", "continue", "running")
    assert sum(arm["units"] for arm in data["arms"]) == 40
    assert [guard["guard"] for guard in data["guards"]] == ["error", "latency_p95"]


def test_without_a_name_all_rollouts_are_listed(kantan_agents: Invoke, db: str) -> None:
    shown = kantan_agents("rollout", "status", "--db", db).stdout
    assert "support:v1-v2" in shown
    assert "running" in shown
    (data,) = json.loads(kantan_agents("rollout", "status", "--db", db, "--json").stdout)
    assert (data["rollout"], data["arms"], data["share"]) == ("support:v1-v2", ["v1", "v2"], 0.5)


def test_a_database_without_rollouts_says_so(kantan_agents: Invoke, empty: str) -> None:
    outcome = kantan_agents("rollout", "status", "--db", empty)
    assert (outcome.code, outcome.stdout) == (0, "The database holds no rollouts.\n")
    assert json.loads(kantan_agents("rollout", "status", "--db", empty, "--json").stdout) == []


def test_a_promotion_from_another_step_is_refused(kantan_agents: Invoke, db: str) -> None:
    refused = kantan_agents("rollout", "promote", "support", "--db", db, "--expect-step", "1")
    assert (refused.code, "it is at step 0 of its ramp, not at 1" in refused.stderr) == (1, True)
    assert kantan_agents("rollout", "promote", "support", "--db", db, "--expect-step", "0").code == 0


def test_a_promotion_and_a_stop_say_what_all_units_get(kantan_agents: Invoke, db: str) -> None:
    promoted = kantan_agents("rollout", "promote", "support", "--db", db, "--by", "Mia", "--reason", "fine")
    assert (promoted.code, promoted.stdout) == (0, "support:v1-v2: all units get v2\n")
    again = kantan_agents("rollout", "promote", "support", "--db", db)
    assert again.code != 0
    assert "E113" in again.stderr
    stopped = kantan_agents("rollout", "stop", "support", "--db", db, "--json")
    assert json.loads(stopped.stdout)["status"] == "stopped"
    shown = kantan_agents("rollout", "history", "support", "--db", db).stdout
    assert [word for word in shown.split() if word in ("start", "promote", "stop")] == [
        "start",
        "promote",
        "stop",
    ]
    assert "Mia" in shown
    assert "fine" in shown
    changes = json.loads(kantan_agents("rollout", "history", "support", "--db", db, "--json").stdout)
    assert [one["action"] for one in changes] == ["start", "promote", "stop"]
    assert changes[1]["evidence"]["verdict"] == "continue"


def test_a_step_of_the_ramp_is_shown_in_per_cent(kantan_agents: Invoke, tmp_path: Path) -> None:
    served(tmp_path / "t.db", 1, ramp=(0.1, 0.25, 1))
    outcome = kantan_agents("rollout", "promote", "support", "--db", str(tmp_path / "t.db"))
    assert outcome.stdout == "support:v1-v2: 25% of the units get v2, the others v1\n"
    assert rollouts(tmp_path / "t.db")[0].share == 0.25


def test_the_arm_of_the_last_step_can_be_named(kantan_agents: Invoke, tmp_path: Path) -> None:
    db = str(tmp_path / "t.db")
    served(tmp_path / "t.db", 1, arms={"v1": V1, "v2": V2, "v3": "Be fast."})
    refused = kantan_agents("rollout", "promote", "support", "--db", db)
    assert "name it: 'v2', 'v3'" in refused.stderr
    assert kantan_agents("rollout", "promote", "support", "--db", db, "--arm", "v3").code == 0
    assert "promoted v3" in kantan_agents("rollout", "status", "--db", db).stdout


@pytest.mark.parametrize("command", ["status", "promote", "stop", "history"])
def test_an_unknown_rollout_is_one_line(kantan_agents: Invoke, db: str, command: str) -> None:
    outcome = kantan_agents("rollout", command, "nobody", "--db", db)
    assert outcome.code == 1
    assert outcome.stdout == ""
    assert outcome.stderr.splitlines() == [
        f"error: [kantan-agents][E112] No rollout 'nobody' in {db}; it has 'support:v1-v2'"
    ]


@pytest.mark.parametrize("command", ["status", "promote", "stop", "history"])
def test_a_missing_database_is_one_line(kantan_agents: Invoke, tmp_path: Path, command: str) -> None:
    outcome = kantan_agents("rollout", command, "support", "--db", str(tmp_path / "missing.db"))
    assert outcome.code != 0
    assert len(outcome.stderr.splitlines()) == 1
    assert "E60" in outcome.stderr
    assert not (tmp_path / "missing.db").exists()


def test_hostile_names_are_shown_as_text(kantan_agents: Invoke, tmp_path: Path) -> None:
    name = "[red]r[/red]\x1b[2J"
    served(tmp_path / "t.db", 2, name=name, arms={"[b]v1": V1, "v2\x07": V2})
    db = str(tmp_path / "t.db")
    for arguments in (("status", name), ("promote", name), ("status", name), ("status",), ("history", name)):
        shown = kantan_agents("rollout", *arguments, "--db", db).stdout
        assert "\x1b[2J" not in shown
        assert "\x07" not in shown
    assert "[red]r[/red]" in kantan_agents("rollout", "status", "--db", db).stdout


def test_the_user_is_the_author_by_default(
    kantan_agents: Invoke, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "aiko")
    kantan_agents("rollout", "promote", "support", "--db", db)

    def nameless() -> str:
        raise KeyError("uid")

    monkeypatch.setattr("getpass.getuser", nameless)
    kantan_agents("rollout", "stop", "support", "--db", db)
    changes = json.loads(kantan_agents("rollout", "history", "support", "--db", db, "--json").stdout)
    assert [one["author"] for one in changes] == ["code", "aiko", "command line"]
