"""``--db postgresql://...``: the commands say what they say about a file."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.cli.recorded_runs import Recorded


@pytest.fixture
def url(shop: Recorded, postgres_url: str, kantan_agents: Any) -> str:
    """The runs of a file in Postgres."""
    outcome = kantan_agents("traces", "copy", str(shop.path), postgres_url)
    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout.startswith(f"Copied {len(shop.ids)} traces with ")
    return postgres_url


COMMANDS = (
    ("traces", "list", "--json"),
    ("traces", "list", "--limit", "2"),
    ("traces", "search", "order"),
    ("traces", "search", "ORDER", "--json", "--limit", "1"),
    ("traces", "show", "LAST"),
    ("traces", "prompts"),
    ("traces", "failed", "--json"),
    ("traces", "export"),
    ("eval", "list"),
)


def test_every_command_that_reads_says_the_same(shop: Recorded, url: str, kantan_agents: Any) -> None:
    for command in COMMANDS:
        of_file, of_server = (kantan_agents(*command, "--db", place) for place in (str(shop.path), url))
        assert of_file.code == of_server.code == 0, (command, of_server.stderr)
        # The name of the database, such as for an evaluation that is missing.
        of_both = [outcome.stdout.replace(url, str(shop.path)) for outcome in (of_file, of_server)]
        # A copy numbers the spans anew, without the gap that a run in the trace of a user leaves.
        assert len({re.sub(r'("ingest_seq": )\d+', r"\1", one) for one in of_both}) == 1, command


def test_a_copy_can_be_repeated_and_its_result_is_json(shop: Recorded, url: str, kantan_agents: Any) -> None:
    result = json.loads(kantan_agents("traces", "copy", str(shop.path), url, "--json").stdout)
    assert (result["traces"], result["known"], result["left_out"]) == (0, len(shop.ids), [])
    same = kantan_agents("traces", "copy", url, url)
    assert (same.code, "E142" in same.stderr) == (2, True)


def test_the_environment_names_the_database(
    url: str, kantan_agents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KANTAN_AGENTS_DB", url)
    assert kantan_agents("traces", "search", "order").stdout


def test_old_runs_are_pruned(shop: Recorded, url: str, kantan_agents: Any) -> None:
    planned = kantan_agents("traces", "prune", "--keep", "1", "--db", url)
    assert planned.code == 0, planned.stderr
    assert len(json.loads(kantan_agents("traces", "list", "--json", "--db", url).stdout)) > 1
    assert kantan_agents("traces", "prune", "--keep", "1", "--yes", "--db", url).code == 0
    listed = json.loads(kantan_agents("traces", "list", "--json", "--db", url).stdout)
    assert len(listed) == 1
    refused = kantan_agents("traces", "prune", "--max-size", "1MB", "--yes", "--db", url)
    assert (refused.code, "E141" in refused.stderr) == (2, True)


@pytest.mark.parametrize("given", ["postgresql://u:s3cret@h", "postgresql://u:s3cret@h/"])
def test_a_url_without_a_database_is_a_mistake_and_its_password_is_hidden(
    given: str, kantan_agents: Any
) -> None:
    outcome = kantan_agents("traces", "list", "--db", given)
    assert outcome.code == 2
    assert "must name a database" in " ".join(outcome.stderr.split())
    assert "s3cret" not in outcome.stderr


def test_a_server_that_is_away_is_an_error_without_the_password(kantan_agents: Any, tmp_path: Any) -> None:
    outcome = kantan_agents("traces", "list", "--db", f"postgresql://u:s3cret@/db?host={tmp_path}")
    assert (outcome.code, "E60" in outcome.stderr) == (2, True)
    assert "s3cret" not in outcome.stderr


def test_a_run_is_recorded(url: str, kantan_agents: Any, serve: Any) -> None:
    with serve(["ok"]):
        outcome = kantan_agents("run", "hello", "--db", url)
    assert outcome.code == 0, outcome.stderr
    assert "hello" in kantan_agents("traces", "show", "LAST", "--db", url).stdout
