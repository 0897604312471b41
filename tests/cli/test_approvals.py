"""``kantan-agents approvals`` and ``runs``, of runs that a real worker makes."""

from __future__ import annotations

import getpass
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kantan_agents.testing import OfflineServer
from tests.cli.conftest import Invoke
from tests.cli.durable_shop import Shop, answer
from tests.programs import Preloaded


@pytest.fixture
def shop(tmp_path: Path, preloaded: Preloaded) -> Iterator[Shop]:
    """Durable agents, their model and a new database."""
    with OfflineServer(answer) as server:
        yield Shop(tmp_path, server, preloaded)


def test_a_run_waits_until_people_have_answered_all_its_calls(shop: Shop, kantan_agents: Invoke) -> None:
    db = ("--db", shop.database)
    run_id = shop.enqueue("asks", "pay twice")
    with shop.worker():
        shop.wait_for(run_id, "waiting")
        listed = json.loads(kantan_agents("approvals", "list", "--json", *db).stdout)
        # Newer SDKs write the arguments without spaces.
        assert [
            (one["run_id"], one["call_id"], one["tool"], json.loads(one["arguments"])) for one in listed
        ] == [
            (run_id, "c1", "pay", {"amount": 1}),
            (run_id, "c2", "pay", {"amount": 2}),
        ]
        which = kantan_agents("approvals", "approve", run_id, *db)
        assert (which.code, "2 calls wait, name one: c1, c2" in which.stderr) == (1, True)
        edited = kantan_agents(
            "approvals", "approve", run_id, "c1", "--by", "Mia", "--arguments", '{"amount": 30}', *db
        )
        assert (edited.code, edited.stdout) == (0, f"{run_id}: c1 approved by Mia\n")
        again = kantan_agents("approvals", "reject", run_id, "c1", *db)
        assert (again.code, "[E158]" in again.stderr, "Mia has approved it" in again.stderr) == (
            1,
            True,
            True,
        )
        rejected = kantan_agents("approvals", "reject", run_id, "--reason", "Too much.", *db)
        assert rejected.code == 0
        assert shop.ask(lambda runs: runs.result(run_id, timeout=60)).output == "All done."
    assert shop.effects == ["pay 30"]
    assert kantan_agents("approvals", "list", *db).stdout == "No call waits.\n"
    answered = json.loads(kantan_agents("approvals", "list", "--all", "--run", run_id, "--json", *db).stdout)
    assert [(one["answer"], one["answered_by"]) for one in answered] == [
        ("approved", "Mia"),
        ("rejected", getpass.getuser()),
    ]
    shown = json.loads(kantan_agents("runs", "show", run_id, "--json", *db).stdout)
    assert (shown["status"], len(shown["approvals"])) == ("finished", 2)
    following = json.loads(kantan_agents("runs", "show", shown["next_run"], "--json", *db).stdout)
    assert (following["status"], following["output"]) == ("finished", "All done.")


def test_what_a_model_says_is_printed_as_text(shop: Shop, kantan_agents: Invoke) -> None:
    db = ("--db", shop.database)
    run_id = shop.enqueue("asks", "hostile")
    with shop.worker():
        shop.wait_for(run_id, "waiting")
        printed = [
            kantan_agents("approvals", "list", *db),
            kantan_agents("runs", "show", run_id, *db),
            kantan_agents("approvals", "approve", run_id, "c/1", *db),
        ]
        next_run = shop.ask(lambda runs: runs.result(run_id, timeout=60)).run_id
    printed += [
        kantan_agents("approvals", "list", "--all", *db),
        kantan_agents("runs", "show", next_run, *db),
    ]
    assert [one.code for one in printed] == [0] * 5
    assert "[bold]bold[/bold]" in printed[-1].stdout
    for one in printed:
        assert not {"\x1b", "\u202e", "\U000e0041"} & set(one.stdout + one.stderr)


@pytest.mark.parametrize("arguments", ["{", "[1]", "NaN", "3"])
def test_arguments_must_be_a_json_object(kantan_agents: Invoke, tmp_path: Path, arguments: str) -> None:
    outcome = kantan_agents(
        "approvals", "approve", "r", "--arguments", arguments, "--db", str(tmp_path / "d")
    )
    assert (outcome.code, "[E75] Invalid option --arguments" in outcome.stderr) == (2, True)
