"""``kantan-agents worker``: real processes and signals."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import TraceStore
from kantan_agents.cli.worker.limits import limits_of
from kantan_agents.durable import Limits
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing import OfflineServer
from tests.cli.conftest import Invoke
from tests.cli.durable_shop import MODULE, Shop, answer
from tests.durable.conftest import use_engine
from tests.programs import Preloaded, Program


@pytest.fixture
def shop(tmp_path: Path, preloaded: Preloaded) -> Iterator[Shop]:
    """Durable agents, their model and a new database."""
    with OfflineServer(answer) as server:
        yield Shop(tmp_path, server, preloaded)


def _line_with(program: Program, text: str) -> str:
    assert program.stderr is not None
    read = []
    for line in program.stderr:
        read.append(line)
        if text in line:
            return str(line)
    raise AssertionError(read)


def _wait_for_effect(shop: Shop, effect: str) -> None:
    end = time.monotonic() + 120
    while effect not in shop.effects:
        assert time.monotonic() < end, shop.effects
        time.sleep(0.02)


def test_it_makes_queued_runs_until_a_signal(shop: Shop) -> None:
    run_id = shop.enqueue("looks", "Say hello.")
    with shop.worker("--traces", "traces.sqlite3", "--concurrency", "2") as worker:
        ready: str = worker.ready  # type: ignore[attr-defined]
        assert "agents: asks, looks; queues: support" in ready
        outcome = shop.ask(lambda runs: runs.result(run_id, timeout=60))
        worker.terminate()
        _, errors = worker.communicate(60)
    assert outcome.output == "Hello."
    assert (worker.returncode, "SIGTERM" in errors) == (0, True), errors
    assert [trace.trace_id for trace in TraceStore(shop.folder / "traces.sqlite3").traces()] == [
        outcome.trace_id
    ]


def test_a_signal_lets_runs_end_and_begins_no_others(shop: Shop) -> None:
    first = shop.enqueue("looks", "look")
    with shop.worker("--concurrency", "1", "--grace", "60") as worker:
        _wait_for_effect(shop, "look sky")
        second = shop.enqueue("looks", "look")
        worker.send_signal(signal.SIGINT)
        _line_with(worker, "ends after SIGINT")
        (shop.folder / "go").touch()
        assert worker.wait(60) == 0
    assert shop.ask(lambda runs: runs.get(first)).status == "finished"
    assert shop.ask(lambda runs: runs.get(second)).status == "queued"


@pytest.mark.fast("a durable worker")
def test_another_worker_finishes_the_run_of_one_that_is_killed(shop: Shop) -> None:
    run_id = shop.enqueue("looks", "look")
    with shop.worker() as killed:
        _wait_for_effect(shop, "look sky")
        with shop.worker() as other:
            killed.kill()
            (shop.folder / "go").touch()
            assert shop.ask(lambda runs: runs.result(run_id, timeout=60)).output == "All done."
            other.terminate()
            assert other.wait(60) == 0
    assert killed.returncode == -signal.SIGKILL
    # The call had not ended: it is made at least once more.
    assert shop.effects[-1] == "saw sky"


def test_a_second_signal_ends_it_at_once_and_the_run_is_left_to_others(shop: Shop) -> None:
    run_id = shop.enqueue("looks", "look")
    with shop.worker("--grace", "3600") as worker:
        _wait_for_effect(shop, "look sky")
        worker.terminate()
        _line_with(worker, "ends after SIGTERM")
        worker.terminate()
        assert worker.wait(60) == -signal.SIGTERM
    (shop.folder / "go").touch()
    with shop.worker():
        assert shop.ask(lambda runs: runs.result(run_id, timeout=60)).output == "All done."


def test_a_signal_ends_it_although_a_tool_holds_a_thread(shop: Shop) -> None:
    run_id = shop.enqueue("looks", "hold")
    with shop.worker("--grace", "0.1") as worker:
        _wait_for_effect(shop, "hold")
        worker.terminate()
        _, errors = worker.communicate(60)
    assert (worker.returncode, "with threads still at work" in errors) == (0, True), errors
    (shop.folder / "go").touch()
    with shop.worker():
        assert shop.ask(lambda runs: runs.result(run_id, timeout=60)).output == "All done."


def test_workers_share_a_postgres_database(tmp_path: Path, preloaded: Preloaded, postgres_url: str) -> None:
    with OfflineServer(answer) as server:
        shop = Shop(tmp_path, server, preloaded, postgres_url)
        run_id = shop.enqueue("looks", "look")
        with shop.worker() as killed:
            _wait_for_effect(shop, "look sky")
            with shop.worker():
                killed.kill()
                (shop.folder / "go").touch()
                assert shop.ask(lambda runs: runs.result(run_id, timeout=60)).output == "All done."


def test_traces_are_kept_beside_durable_runs_whose_tables_were_first(
    tmp_path: Path, preloaded: Preloaded, postgres_url: str
) -> None:
    """A worker creates both at the same time, in two threads; here the order is certain."""
    with OfflineServer(answer) as server:
        shop = Shop(tmp_path, server, preloaded, postgres_url)
        run_id = shop.enqueue("looks", "Say hello.")
        with shop.worker("--traces", postgres_url) as worker:
            outcome = shop.ask(lambda runs: runs.result(run_id, timeout=60))
            worker.terminate()
            _, errors = worker.communicate(60)
    assert (worker.returncode, "E62" in errors) == (0, False), errors
    assert [trace.trace_id for trace in TraceStore(postgres_url).traces()] == [outcome.trace_id]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nowhere:agent"], "[E75] Invalid option MODULE:NAME: nowhere:agent: "),
        (["durable_shop_agents"], "it must be MODULE:NAME"),
        (["durable_shop_agents:number"], "it must be an Agent or a list of agents, not int"),
        (["durable_shop_agents:nothing"], "it is an empty list"),
        (["durable_shop_agents:fleeting"], "must be agents with Durable() among their middleware"),
        (["durable_shop_agents:made", "--rate", "10"], "Invalid option --rate: must be N/SECONDS"),
        (["durable_shop_agents:made", "--rate", "0/60"], "Invalid option --rate: must be N/SECONDS"),
        (
            ["durable_shop_agents:made", "--concurrency", "0"],
            "Invalid option --concurrency: must be 1 or more",
        ),
        (["durable_shop_agents:made", "--grace", "-1"], "Invalid option --grace: "),
        (["durable_shop_agents:made", "--queue", ""], "is not a name for a queue"),
        (["durable_shop_agents:made", "--db", "mysql://me:hidden1@host/db"], "[E156]"),
        (["durable_shop_agents:made", "--db", "postgresql://me:hidden1@127.0.0.1:1/db"], "[E156]"),
        (["durable_shop_agents:made", "--db", "postgresql://me:hidden1@host:port/db"], "[E156]"),
        (["durable_shop_agents:made", "--db", "missing/durable.sqlite3"], "[E156]"),
        (["durable_shop_agents:made", "--traces", "missing/traces.sqlite3"], "[E60]"),
        ([], "Missing argument"),
    ],
)
def test_a_bad_argument_is_one_line_and_exit_code_2(
    kantan_agents: Invoke,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    text: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KANTAN_AGENTS_DB")
    (tmp_path / "durable_shop_agents.py").write_text(MODULE)
    outcome = kantan_agents("worker", *arguments)
    assert (outcome.code, outcome.stdout, outcome.stderr.count("\n")) == (2, "", 1)
    assert outcome.stderr.startswith("error: [kantan-agents][")
    assert text in outcome.stderr
    assert "hidden1" not in outcome.stderr


def test_a_worker_of_temporal_needs_its_address_and_no_other_command_does(
    shop: Shop, kantan_agents: Invoke, temporal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_engine(monkeypatch, temporal)
    run_id = shop.enqueue("looks", "Say hello.")
    with shop.worker("--engine", temporal):
        assert shop.ask(lambda runs: runs.result(run_id, timeout=60)).output == "Hello."
    use_engine(monkeypatch, "dbos")
    outcome = kantan_agents("runs", "list", "--db", shop.database, "--json")
    assert (outcome.code, outcome.stderr) == (0, "")
    assert [run["status"] for run in json.loads(outcome.stdout)] == ["finished"]


def test_a_missing_engine_names_the_package_to_install(
    kantan_agents: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "dbos", None)
    outcome = kantan_agents("runs", "list", "--db", str(tmp_path / "durable.sqlite3"))
    assert outcome.code == 2
    assert "[E198]" in outcome.stderr
    assert 'python -m pip install ".[dbos]"' in outcome.stderr


def test_limits_come_from_the_options() -> None:
    given: dict[str, Any] = {"total": None, "rate": None, "tenant_concurrency": None, "tenant_rate": None}
    assert limits_of(concurrency=3, **given) == Limits(concurrency=3)
    full: dict[str, Any] = {"total": 9, "rate": "100/60", "tenant_concurrency": 2, "tenant_rate": "5/60.0"}
    assert limits_of(concurrency=3, **full) == Limits(3, 9, 100, 60.0, 2, 5)
    assert limits_of(concurrency=3, **{**given, "tenant_rate": "5/0.5"}) == Limits(
        3, period=0.5, tenant_rate=5
    )
    with pytest.raises(InvalidOptionError, match="must be for the same time as --rate, 60 seconds"):
        limits_of(concurrency=3, **{**full, "tenant_rate": "5/30"})
