"""What an experiment reports, keeps and spends."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import anyio
import attrs
import openai
import pytest
from agents import ModelSettings, RunConfig

from kantan_agents import Agent, Middleware, Prompt
from kantan_agents.errors import (
    EmptyCohortError,
    InvalidChangeError,
    InvalidOptionError,
    ReplayBudgetError,
    TraceDatabaseError,
    TraceNotFoundError,
)
from kantan_agents.lab import Change, Cohort, Experiment, RunOutcome, replay_cohort, replay_cohort_async
from kantan_agents.testing import OfflineServer, ScriptedModel, ScriptedToolCall
from kantan_agents.traces.store import connection as connections
from kantan_agents.traces.store.experiment_keys import EXPERIMENT_KEY, REPLAYED_KEY
from tests.lab.replay.cohorts import HARMLESS, Recorder, recording

QUESTIONS = ("order 5", "order 6", "order 7")
PRICES = {"small": (1.0, 2.0), "large": (10.0, 20.0)}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Recorder]:
    with recording(tmp_path / "traces.db") as recorder:
        yield recorder


def reply(request: Any) -> Any:
    """Answer as a model that follows its instructions: what it asks for depends on the request."""
    last, instructions = request.input[-1], str(request.system_instructions)
    if last.get("type") == "function_call_output":
        return f"{'Dear customer, ' if 'polite' in instructions else ''}{last['output']}"
    number = str(last["content"]).split()[-1]
    if "careful" in instructions and number == "7":
        return ScriptedToolCall("refund", {"number": number})
    return ScriptedToolCall("status", {"number": number})


@attrs.define
class Shop:
    """An agent at a server, with three recorded runs."""

    db: Recorder
    server: OfflineServer
    agent: Agent[Any]

    @property
    def cohort(self) -> Cohort:
        return Cohort.select(self.db.store, prompt="shop")

    def replay(self, change: Change, **options: Any) -> Experiment:
        return replay_cohort(self.cohort, self.agent, change, **options)


@pytest.fixture
def shop(db: Recorder) -> Iterator[Shop]:
    def status(number: str) -> str:
        """Return the status of an order."""
        db.ran.append(f"status {number}")
        return f"order {number} is on its way"

    def refund(number: str) -> str:
        """Refund an order."""
        db.ran.append(f"refund {number}")
        return "done"

    with OfflineServer(reply) as server:
        agent = Agent(
            "shop", Prompt("shop", "v1", "Help."), model=server.bundle("small"), tools=[status, refund]
        )
        for question in QUESTIONS:
            db.run(agent, question)
        db.ran.clear()
        server.requests.clear()
        yield Shop(db, server, agent)


def test_runs_are_sorted_into_same_wording_and_diverged(shop: Shop) -> None:
    seen: list[tuple[int, int]] = []
    experiment = shop.replay(
        Change.prompt("Help carefully, and be polite."), progress=lambda *counts: seen.append(counts)
    )
    assert dict(experiment.counts) == {"same": 0, "wording": 2, "changed": 0, "diverged": 1, "failed": 0}
    assert experiment.coverage == pytest.approx(2 / 3)
    assert experiment.is_complete
    assert experiment.new_calls == {("shop", "refund"): 1}
    assert experiment.runs[0].status == "diverged"  # the newest is the first
    assert experiment.runs[1].output_before == "order 6 is on its way"
    assert experiment.runs[1].output_after == "Dear customer, order 6 is on its way"
    assert (seen[0], seen[-1]) == ((0, 3), (3, 3))
    assert not shop.db.ran


def test_fields_of_structured_outputs_are_decisions(db: Recorder) -> None:
    output_type = {
        "type": "object",
        "properties": {"team": {"type": "string"}, "user": {"type": "object", "properties": {"id": {}}}},
    }

    def make(model: ScriptedModel) -> Agent[Any]:
        return Agent("a", "Hi", model=model, output_type=output_type)

    run = db.again(make, ['{"team":"billing","user":{"id":1}}'], ['{"team":"shipping","user":{"id":2}}'])
    assert run.status == "changed"
    assert [(one.kind, one.name, one.before, one.after) for one in run.decisions] == [
        ("field", "team", "billing", "shipping"),
        ("field", "user.id", 1, 2),
    ]


def test_an_error_that_is_gone_is_a_decision_and_a_new_one_a_failure(db: Recorder) -> None:
    def make(model: ScriptedModel) -> Agent[Any]:
        return Agent("a", "Hi", model=model)

    gone = db.again(make, [RuntimeError("down")], ["fine"])
    assert (gone.status, [one.kind for one in gone.decisions]) == ("changed", ["error"])
    new = db.again(make, ["fine"], [RuntimeError("down")], name="new")
    assert (new.status, new.error) == ("failed", "down")


def test_tokens_and_costs_are_those_of_the_runs_that_can_be_compared(shop: Shop) -> None:
    experiment = shop.replay(Change.prompt("Help carefully."), prices=PRICES)
    per_call = (10, 5)
    assert (experiment.before.input_tokens, experiment.before.output_tokens) == (40, 20)
    assert experiment.after.tokens == 4 * sum(per_call)
    assert experiment.spent.tokens == 5 * sum(per_call)
    assert experiment.before.cost == pytest.approx((40 * 1 + 20 * 2) / 1e6)
    assert shop.replay(Change.settings(temperature=0.1)).before.cost is None
    larger = shop.replay(Change.model(shop.server.bundle("large")), prices=PRICES)
    assert larger.after.cost == pytest.approx(10 * (larger.before.cost or 0))


def test_the_new_runs_are_recorded_and_point_to_the_old_ones(shop: Shop) -> None:
    experiment = shop.replay(HARMLESS, name="try")
    shop.db.recorder.force_flush()
    for run in experiment.runs:
        assert run.replayed_trace_id is not None
        metadata = shop.db.store.trace(run.replayed_trace_id).summary.metadata
        assert (metadata[EXPERIMENT_KEY], metadata[REPLAYED_KEY]) == ("try", run.run_id)
    assert len(shop.cohort) == 3  # and they do not become part of the next cohort
    assert len(Cohort.select(shop.db.store, metadata={EXPERIMENT_KEY: "try"})) == 3


def test_without_a_recorder_nothing_is_recorded_but_the_experiment(shop: Shop) -> None:
    from agents import set_trace_processors

    cohort = shop.cohort
    set_trace_processors([])
    experiment = replay_cohort(cohort, shop.agent, HARMLESS)
    assert experiment.counts["same"] == 3
    assert len(shop.db.store.traces()) == 3


def test_finished_runs_are_not_made_again(shop: Shop) -> None:
    first = shop.replay(HARMLESS, repeats=2)
    sent = len(shop.server.requests)
    assert sent == 12
    again = shop.replay(HARMLESS, repeats=2)
    assert len(shop.server.requests) == sent
    assert again.runs == first.runs
    shop.replay(HARMLESS, repeats=3)
    assert len(shop.server.requests) == sent + 6
    shop.replay(HARMLESS, name="other")
    assert len(shop.server.requests) == sent + 12


def test_another_version_of_the_agent_is_another_experiment(shop: Shop) -> None:
    shop.replay(HARMLESS, name="try")
    shop.agent = shop.agent.clone(instructions=Prompt("shop", "v2", "Help more."))
    sent = len(shop.server.requests)
    shop.replay(HARMLESS, name="try")
    assert len(shop.server.requests) == sent + 6


def test_a_stored_experiment_is_read_as_it_was(shop: Shop) -> None:
    made = shop.replay(Change.prompt("Help carefully."), name="try", prices=PRICES)
    loaded = Experiment.load(shop.db.store, "try")
    assert sorted(loaded.runs, key=lambda run: run.run_id, reverse=True) == list(made.runs)
    assert (loaded.changes, loaded.agent, loaded.planned) == (made.changes, made.agent, made.planned)
    assert loaded.to_dict()["counts"] == made.to_dict()["counts"]
    with pytest.raises(InvalidOptionError, match="did you mean 'try'"):
        Experiment.load(shop.db.store, "tri")


def test_all_experiments_are_exported_with_everything_that_is_stored(shop: Shop) -> None:
    assert [*Experiment.load_all(shop.db.store)] == []
    shop.replay(Change.prompt("Help carefully."), name="first", prices=PRICES, live={"refund"})
    player = Agent("player", "Play.", model=ScriptedModel(["played"] * 2))
    shop.replay(Change.prompt("Help carefully, and be polite."), name="second", simulate=player, repeats=2)
    exported = [json.loads(json.dumps(one.to_dict())) for one in Experiment.load_all(shop.db.store)]
    assert [(one["name"], len(one["runs"])) for one in exported] == [("second", 6), ("first", 3)]
    assert exported == [Experiment.load(shop.db.store, one["name"]).to_dict() for one in exported]
    with closing(sqlite3.connect(shop.db.store.path)) as connection:
        for one in exported:
            query = "SELECT id, hash, created_at, body FROM kantan_agents_experiments WHERE name = ?"
            number, *columns, body = connection.execute(query, (one["name"],)).fetchone()
            stored = json.loads(body)
            assert [one["hash"], one["created_at"]] == columns
            assert {key: one[key] for key in stored} == stored
            query = "SELECT body FROM kantan_agents_experiment_runs WHERE experiment_id = ? ORDER BY id"
            assert one["runs"] == [json.loads(body) for (body,) in connection.execute(query, (number,))]
    assert [(one["live"], one["simulate"]) for one in exported] == [([], "player"), (["refund"], None)]


def rows_of(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


def test_pruned_traces_take_their_results_along(shop: Shop) -> None:
    shop.replay(HARMLESS, name="try")
    shop.db.recorder.force_flush()
    kept = shop.cohort.trace_ids[0]
    shop.db.store.prune(keep=4)  # three new traces and the newest of the old ones
    assert [run.trace_id for run in Experiment.load(shop.db.store, "try").runs] == [kept]


def test_an_experiment_goes_with_its_last_result_and_takes_no_other_along(shop: Shop) -> None:
    store, oldest = shop.db.store, shop.cohort.trace_ids[-1]
    replay_cohort(Cohort.of(store, [oldest]), shop.agent, HARMLESS, name="oldest")
    shop.replay(HARMLESS, name="all")
    shop.db.recorder.force_flush()
    store.prune(keep=6, dry_run=True)
    assert {one.name for one in Experiment.load_all(store)} == {"oldest", "all"}
    store.prune(keep=6)  # six of nine traces: the three newest runs of "all" and of the old ones the newest
    assert [one.name for one in Experiment.load_all(store)] == ["all"]
    store.prune(keep=4)
    assert [*Experiment.load_all(store)] == []
    for table in ("kantan_agents_experiments", "kantan_agents_experiment_runs"):
        assert rows_of(store.path, table) == 0


def test_a_pruned_repetition_leaves_its_result_because_the_recorded_run_is_kept(shop: Shop) -> None:
    made = shop.replay(HARMLESS, name="try")
    shop.db.recorder.force_flush()
    with closing(sqlite3.connect(shop.db.store.path)) as connection, connection:
        delete = "DELETE FROM traces WHERE id = ?"
        connection.executemany(delete, [(run.replayed_trace_id,) for run in made.runs])
    loaded = Experiment.load(shop.db.store, "try")
    assert sorted(loaded.runs, key=lambda run: run.run_id, reverse=True) == list(made.runs)


def test_results_are_kept_if_a_prune_deletes_the_earlier_ones_meanwhile(shop: Shop) -> None:
    store, cohort = shop.db.store, shop.cohort
    other = Change.settings(temperature=0.4)

    def progress(done: int, _total: int) -> None:
        if done != 1:
            return
        with closing(sqlite3.connect(store.path)) as connection, connection:
            connection.execute("DELETE FROM traces WHERE id = ?", (cohort.trace_ids[0],))
        # It would get the number of the experiment that is gone.
        replay_cohort(Cohort.of(store, [cohort.trace_ids[1]]), shop.agent, other, name="other")

    made = replay_cohort(cohort, shop.agent, HARMLESS, name="try", concurrency=1, progress=progress)
    assert len(made.runs) == 3
    assert [run.trace_id for run in Experiment.load(store, "try").runs] == [*cohort.trace_ids[1:]]
    assert [run.trace_id for run in Experiment.load(store, "other").runs] == [cohort.trace_ids[1]]


def test_a_run_whose_recording_is_deleted_while_it_is_made_is_not_stored(db: Recorder) -> None:
    trace_id = db.run(Agent("a", "Hi", model=ScriptedModel(["x"])))

    class Delete(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            with closing(sqlite3.connect(db.store.path)) as connection, connection:
                connection.execute("DELETE FROM traces WHERE id = ?", (trace_id,))
            return await call_next(call)

    agent = Agent("a", "Hi", model=ScriptedModel(["x"]))
    made = db.replay([trace_id], agent, Change.middleware(Delete()), name="try")
    assert [run.status for run in made.runs] == ["same"]
    assert Experiment.load(db.store, "try").runs == ()


def test_failed_runs_are_made_again(db: Recorder) -> None:
    trace_id = db.run(Agent("a", "Hi", model=ScriptedModel(["fine"])))
    failed = db.replay([trace_id], Agent("a", "Hi", model=ScriptedModel([RuntimeError("down")])))
    assert failed.counts["failed"] == 1
    assert db.replay([trace_id], Agent("a", "Hi", model=ScriptedModel(["fine"]))).counts["same"] == 1


def test_a_model_that_cannot_be_reached_stops_the_experiment_and_keeps_what_is_finished(shop: Shop) -> None:
    shop.replay(HARMLESS, name="try", concurrency=1)
    cohort = shop.cohort
    away = openai.AsyncOpenAI(api_key="x", base_url="http://127.0.0.1:9/v1", max_retries=0)
    from agents import OpenAIResponsesModel

    change = Change.model(OpenAIResponsesModel("m", away))
    experiment = replay_cohort(cohort, shop.agent, change, concurrency=1)
    assert isinstance(experiment.stopped, openai.APIConnectionError)
    assert (experiment.runs, experiment.planned, experiment.is_complete) == ((), 3, False)
    assert len(Experiment.load(shop.db.store, "try").runs) == 3


def test_a_database_that_cannot_be_written_stops_the_experiment_and_the_next_start_goes_on(
    db: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [db.run(Agent("a", "Hi", model=ScriptedModel(["x"]))) for _ in range(3)]
    agent = Agent("a", "Hi", model=ScriptedModel(["x"] * 4))
    with (
        closing(sqlite3.connect(db.store.path, isolation_level=None, check_same_thread=False)) as other,
        monkeypatch.context() as impatient,  # the recorder writes too, for which the second start waits
    ):
        impatient.setattr(connections, "_CHANGE_WAIT_SECONDS", 0.01)

        def progress(done: int, _total: int) -> None:
            if done == 1:
                other.execute("BEGIN IMMEDIATE")

        change = Change.settings(temperature=0.3)
        cohort = Cohort.of(db.store, ids)
        made = replay_cohort(cohort, agent, change, concurrency=1, name="try", progress=progress)
        other.execute("ROLLBACK")
    assert isinstance(made.stopped, TraceDatabaseError)
    assert "locked" in str(made.stopped)
    assert (len(made.runs), made.planned, made.is_complete) == (1, 3, False)
    assert replay_cohort(cohort, agent, change, name="try").is_complete
    assert len(agent.sdk_agent.model.calls) == 4


def test_a_budget_is_checked_before_the_start(shop: Shop) -> None:
    for options in ({"max_tokens": 89}, {"max_cost": 0.00011, "prices": PRICES}):
        with pytest.raises(ReplayBudgetError, match="for 3 runs"):
            shop.replay(HARMLESS, **options)
    assert not shop.server.requests
    assert shop.replay(HARMLESS, max_tokens=90).is_complete
    with pytest.raises(ReplayBudgetError, match="estimated"):
        shop.replay(Change.model(shop.server.bundle("priceless")), max_cost=1, prices=PRICES)


def test_a_change_of_model_is_estimated_with_its_price(shop: Shop) -> None:
    larger = Change.model(shop.server.bundle("large"))
    with pytest.raises(ReplayBudgetError):
        shop.replay(larger, max_cost=0.0005, prices=PRICES)
    assert shop.replay(larger, max_cost=0.0013, prices=PRICES).is_complete


def test_a_budget_holds_while_runs_need_more_than_estimated(db: Recorder) -> None:
    def make() -> Agent[Any]:
        return Agent("a", "Hi", model=server.bundle("m"), tools=[db.tool("t1")])

    with OfflineServer(["one", "two"]) as server:
        ids = [db.run(make()), db.run(make())]
    calls = (ScriptedToolCall("t1", {}) for _ in range(100))
    with OfflineServer(lambda _request: next(calls)) as server:
        experiment = db.replay(ids, make(), live={"t1"}, max_tokens=45, concurrency=1)
        assert len(server.requests) == 3  # 15 tokens each; the estimate was 30 for both runs
    assert isinstance(experiment.stopped, ReplayBudgetError)
    assert "after 45 tokens" in str(experiment.stopped)  # no finished run has them
    assert not experiment.runs


def test_runs_are_made_at_the_same_time_but_not_more_than_allowed(db: Recorder) -> None:
    running, most = 0, 0
    are_two = anyio.Event()

    class Wait(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            if running == 2:
                are_two.set()
            with anyio.move_on_after(60):
                await are_two.wait()
            await anyio.sleep(0.01)  # a third begins here, if it may
            running -= 1
            return await call_next(call)

    ids = [db.run(Agent("a", "Hi", model=ScriptedModel(["x"]))) for _ in range(4)]
    agent = Agent("a", "Hi", model=ScriptedModel(["x"] * 4))
    experiment = db.replay(ids, agent, Change.middleware(Wait()), concurrency=2)
    assert (experiment.counts["same"], most) == (4, 2)


async def test_cancelling_keeps_what_is_finished_and_the_next_start_goes_on(db: Recorder) -> None:
    script: Callable[[int], ScriptedModel] = lambda count: ScriptedModel(["x"] * count)
    for _ in range(3):
        await Agent("a", "Hi", model=script(1)).run_async("q")
    db.recorder.force_flush()
    cohort = Cohort.select(db.store, agent="a")
    with anyio.CancelScope() as scope:

        def progress(done: int, _total: int) -> None:
            if done == 2:
                scope.cancel()

        await replay_cohort_async(
            cohort, Agent("a", "Hi", model=script(3)), HARMLESS, concurrency=1, progress=progress
        )
    assert scope.cancelled_caught
    rest = script(3)
    experiment = await replay_cohort_async(cohort, Agent("a", "Hi", model=rest), HARMLESS)
    assert (len(rest.calls), experiment.counts["same"]) == (1, 3)


def test_a_cohort_is_chosen_by_filters_ids_or_at_random(shop: Shop) -> None:
    store = shop.db.store
    assert len(Cohort.select(store, prompt="shop", version="v1", last=timedelta(days=1))) == 3
    one = Cohort.select(store, sample=1, seed=1)
    assert one.trace_ids == Cohort.select(store, sample=1, seed=1).trace_ids
    assert {Cohort.select(store, sample=1, seed=seed).trace_ids for seed in range(20)} > {one.trace_ids}
    short = [trace_id[-12:] for trace_id in shop.cohort.trace_ids]
    assert Cohort.of(store, short).trace_ids == shop.cohort.trace_ids
    assert [recording.root.input for recording in shop.cohort.recordings()] == [*reversed(QUESTIONS)]


def test_an_empty_cohort_is_an_error(shop: Shop) -> None:
    store = shop.db.store
    with pytest.raises(EmptyCohortError, match="filters"):
        Cohort.select(store, prompt="unknown")
    with pytest.raises(EmptyCohortError, match="no trace id"):
        Cohort.of(store, [])
    with pytest.raises(TraceNotFoundError):
        Cohort.of(store, ["trace_unknown"])
    with pytest.raises(EmptyCohortError, match="a run of 'shop', not of 'other'"):
        replay_cohort(shop.cohort, shop.agent.clone(name="other"), HARMLESS)
    with pytest.raises(InvalidOptionError, match="last"):
        Cohort.select(store, last=timedelta(1), started_from=datetime.now(timezone.utc))


def test_traces_that_are_not_complete_are_counted_and_named(shop: Shop) -> None:
    with sqlite3.connect(shop.db.store.path) as connection:
        connection.execute("DELETE FROM kantan_agents_runs WHERE trace_id = ?", (shop.cohort.trace_ids[1],))
    connection.close()
    experiment = shop.replay(HARMLESS)
    assert experiment.planned == 2
    (skipped,) = experiment.skipped
    assert skipped.trace_id == shop.cohort.trace_ids[1]
    assert "not complete" in skipped.reason


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"repeats": 0}, "repeats"),
        ({"concurrency": 0}, "concurrency"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_cost": 1.0}, "needs prices"),
        ({"max_cost": -1.0, "prices": PRICES}, "max_cost"),
        ({"prices": {"m": 3}}, "prices"),
        ({"simulate": "model"}, "simulate"),
    ],
)
def test_bad_options_are_errors_before_the_start(shop: Shop, options: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidOptionError, match=text):
        shop.replay(HARMLESS, **options)
    assert not shop.server.requests


@pytest.mark.parametrize("table", ["kantan_agents_experiments", "kantan_agents_experiment_runs"])
@pytest.mark.parametrize("body", ["{}", "[", "3"])
def test_a_damaged_row_is_an_error_of_the_database(shop: Shop, table: str, body: str) -> None:
    shop.replay(HARMLESS, name="try")
    with closing(sqlite3.connect(shop.db.store.path)) as connection, connection:
        connection.execute(f"UPDATE {table} SET body = ?", (body,))
    with pytest.raises(TraceDatabaseError, match="the experiment 'try' is damaged"):
        Experiment.load(shop.db.store, "try")
    with pytest.raises(TraceDatabaseError, match="the experiment 'try' is damaged"):
        [*Experiment.load_all(shop.db.store)]


def test_an_outcome_survives_its_way_through_json(shop: Shop) -> None:
    for run in shop.replay(Change.prompt("Help carefully."), prices=PRICES).runs:
        assert RunOutcome.from_dict(json.loads(json.dumps(run.to_dict()))) == run


def test_an_outcome_of_an_earlier_version_has_today_s_kind_of_decision() -> None:
    stored = {"kind": "refusal", "agent": "a", "name": "t", "before": None, "after": "E14"}
    data = {"trace_id": "t", "run_id": "r", "repeat": 0, "status": "changed", "decisions": [stored]}
    (decision,) = RunOutcome.from_dict(data).decisions
    assert (decision.kind, decision.after) == ("denial", "E14")


def test_a_run_config_is_that_of_every_run(db: Recorder) -> None:
    config = RunConfig(model_settings=ModelSettings(top_p=0.5), trace_metadata={"team": "blue"})
    trace_id = db.run(Agent("a", "Hi", model=ScriptedModel(["yes"])), run_config=config)
    model = ScriptedModel(["yes"] * 3)
    agent = Agent("a", "Hi", model=model)
    experiment = db.replay([trace_id], agent, run_config=config)
    assert [call.model_settings.top_p for call in model.calls] == [0.5]
    replayed = db.store.trace(str(experiment.runs[0].replayed_trace_id)).summary
    assert (replayed.metadata["team"], replayed.metadata[EXPERIMENT_KEY]) == ("blue", experiment.name)
    # Another configuration is another experiment, the same one goes on.
    db.replay([trace_id], agent, run_config={"model_settings": ModelSettings(top_p=0.5)})
    assert len(model.calls) == 1
    db.replay([trace_id], agent, run_config={"model_settings": ModelSettings(top_p=0.6)})
    assert [call.model_settings.top_p for call in model.calls] == [0.5, 0.6]


@pytest.mark.parametrize("config", [3, {"modell": "x"}])
def test_an_invalid_run_config_is_an_error_before_the_start(db: Recorder, config: Any) -> None:
    agent = Agent("a", "Hi", model=ScriptedModel(["yes"]))
    trace_id = db.run(agent)
    with pytest.raises(InvalidOptionError, match=r"E75.*run_config"):
        db.replay([trace_id], agent, run_config=config)


@pytest.mark.parametrize(
    ("config", "change"),
    [
        ({"model": ScriptedModel([])}, Change.model(ScriptedModel([]))),
        ({"model_settings": ModelSettings(top_p=0.5)}, Change.settings(temperature=0.1, top_p=0.4)),
    ],
    ids=["model", "settings"],
)
def test_a_change_that_the_run_config_would_undo_is_an_error(db: Recorder, config: Any, change: Any) -> None:
    agent = Agent("a", "Hi", model=ScriptedModel(["yes"]))
    trace_id = db.run(agent)
    with pytest.raises(InvalidChangeError, match=r"E94.*run_config"):
        db.replay([trace_id], agent, change, run_config=config)


def test_a_budget_of_nothing_permits_models_that_cost_nothing(shop: Shop) -> None:
    free = {"small": (0.0, 0.0)}
    assert shop.replay(Change.settings(temperature=0.5), max_cost=0, prices=free).is_complete
