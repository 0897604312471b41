"""``replay_cohort``: replays a cohort with a change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import anyio
import attrs
from agents import RunConfig
from anyio.to_thread import run_sync

from kantan_agents.agent import Agent
from kantan_agents.agent.running.sync_of import sync_of
from kantan_agents.errors import (
    InvalidOptionError,
    KantanAgentsError,
    ReplayBudgetError,
    TraceDatabaseError,
)
from kantan_agents.lab.experiment.identity import described_config
from kantan_agents.lab.experiment.prices import Prices
from kantan_agents.lab.experiment.reached import Reached
from kantan_agents.lab.experiment.run_config import checked_config
from kantan_agents.lab.experiment.spending import Spending, spending_limits
from kantan_agents.lab.experiment.work import Work, is_fatal
from kantan_agents.lab.replay.change import Change
from kantan_agents.lab.replay.changed_agent import changed_agent, changes_of, hash_of
from kantan_agents.lab.replay.cohort import Cohort, check_estimates
from kantan_agents.lab.replay.experiment.experiment import Experiment, of_row
from kantan_agents.lab.replay.experiment.one_run import Runner, check_effect
from kantan_agents.lab.replay.experiment.outcome import RunOutcome
from kantan_agents.lab.replay.experiment.plan import ExperimentPlan, PlannedRun, WantedExperiment, plan_of
from kantan_agents.lab.replay.experiment.rows import ExperimentRow, open_experiment, read_runs, write_run
from kantan_agents.lab.replay.experiment.tool_answers import checked_simulator
from kantan_agents.lab.replay.recording import Recording
from kantan_agents.support.arguments import checked_int

Progress = Callable[[int, int], None]
"""Called with the number of finished and of all runs after each run."""


async def replay_cohort_async(
    cohort: Cohort,
    agent: Agent[Any],
    changes: Change | Iterable[Change],
    *,
    live: Iterable[str] = (),
    simulate: Agent[Any] | None = None,
    repeats: int = 1,
    concurrency: int = 4,
    prices: Mapping[str, tuple[float, float]] | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    context: Mapping[str, Any] | None = None,
    run_config: RunConfig | Mapping[str, Any] | None = None,
    name: str | None = None,
    progress: Progress | None = None,
) -> Experiment:
    """Do the same as ``replay_cohort`` on the running event loop; if canceled, finished runs stay stored."""
    if not isinstance(agent, Agent):
        raise InvalidOptionError(option="agent", reason=f"must be an Agent, not {type(agent).__name__}")
    listed = changes_of(changes)
    simulate = checked_simulator(simulate)
    names = frozenset((live,) if isinstance(live, str) else live)
    priced = Prices.of(prices)
    limits = spending_limits(max_tokens, max_cost, priced)
    workers = checked_int("concurrency", concurrency, 1)
    config = checked_config(run_config)
    check_effect(config, listed)
    made = changed_agent(await Reached.from_agent(agent), listed)
    wanted = WantedExperiment(
        agent,
        made.agent,
        listed,
        made.parts,
        names,
        simulate,
        checked_int("repeats", repeats, 1),
        priced,
        dict(context or {}),
        config,
    )
    plan = await run_sync(plan_of, cohort, wanted)
    more = {"live": sorted(names), "simulate": None if simulate is None else simulate.name}
    # Experiments without a configuration have the same hash in files of earlier versions.
    configured = {} if run_config is None else {"run_config": described_config(config)}
    row = await run_sync(
        open_experiment,
        cohort.store.path,
        name or ", ".join(change.label for change in listed),
        hash_of(wanted.after, listed, more | configured),
        {
            "agent": agent.name,
            "changes": [change.label for change in listed],
            "planned": len(plan.units),
            "skipped": [attrs.asdict(one) for one in plan.skipped],
            **more,
        },
    )
    spending = Spending(limits)
    runner = Runner(row.name, wanted, spending)
    work = _CohortWork(cohort, plan, row, runner, Work(spending), progress)
    await work.read_finished()
    check_estimates(limits, (unit.estimate for unit in work.missing))
    with wanted.after.subscribe(runner.notice):
        await work.make(workers)
    return work.experiment()


@sync_of(replay_cohort_async)
def replay_cohort() -> None:
    """Replay recorded runs with a change, and compare each with its recording.

        cohort = Cohort.select(store, prompt="support", last=timedelta(days=7))
        experiment = replay_cohort(cohort, support_agent, Change.model("gpt-6.1-terra"))

    The models are really called, so it costs tokens. Tools do not run: a call that equals a recorded one of
    the same run, by agent, tool and arguments, gets its result; any other call stops that run as diverged.
    Your own code in middleware, renderers, guardrails and hooks does run.

    Each finished run is stored in the cohort's database immediately. Started again with the same name,
    changes and agent, the experiment runs only the runs that are missing or failed.

    Args:
        cohort: The recorded runs.
        agent: The current agent, without the changes.
        changes: The changes: of this agent or, with ``Change.of``, of one that it reaches.
        live: Names of tools that may really run if the recording does not answer a call.
        simulate: An agent without tools that plays any other function tool whose call the recording does not
            answer. Its input is JSON with the tool, the arguments and recorded calls; its answer is the
            result.
        repeats: How often to replay each run.
        concurrency: The number of concurrent runs.
        prices: For each model, the prices of a million input and output tokens, for costs.
        max_tokens: The most input and output tokens of the missing runs together. A run starts only if its
            recorded usage still fits. A run that uses up the rest is stopped and not stored, and counts.
        max_cost: The most that they may cost, in the currency of ``prices``.
        context: More values for the context than those that the templates read, which are recorded.
        run_config: The SDK's ``RunConfig`` that your program runs the agent with, or a dict of its fields. It
            is not recorded.
        name: Name of the experiment; by default derived from the changes.
        progress: Called whenever a run has finished.

    Raises:
        InvalidChangeError: E94, a change is invalid.
        NoChangeError: E95, a change has no effect.
        UnknownRecordedToolError: E96, the agent lacks a tool that a run called.
        EmptyCohortError: E97, no run can be repeated.
        ReplayBudgetError: E98, the estimate from the recorded usage exceeds the budget.
        ModelNotFoundError: E19, the new model is unknown.
        InvalidOptionError: E75, an option is invalid.
        TraceDatabaseError: E60, the database cannot be read or changed at the start.

    Returns:
        The experiment. If later the model cannot be reached, the budget runs out or the database fails, it
        has the runs stored so far, and ``stopped`` is the error.
    """


@attrs.frozen
class _CohortWork:
    """The finished and the missing runs."""

    _cohort: Cohort
    _plan: ExperimentPlan
    _row: ExperimentRow
    _runner: Runner
    _work: Work
    _progress: Progress | None
    _finished: dict[tuple[str, str, int], RunOutcome] = attrs.field(factory=dict)

    @property
    def missing(self) -> list[PlannedRun]:
        """The missing and the failed runs."""
        return [unit for unit in self._plan.units if unit.key not in self._finished]

    async def read_finished(self) -> None:
        """Read finished runs of an earlier start."""
        keys = {unit.key for unit in self._plan.units}
        for run in await run_sync(read_runs, self._cohort.store.path, self._row):
            key = (run.trace_id, run.run_id, run.repeat)
            if run.status != "failed" and key in keys:
                self._finished[key] = run
        self._report()

    async def make(self, workers: int) -> None:
        """Run the missing ones."""
        await self._work.do(self.missing, self._paid, workers)

    def experiment(self) -> Experiment:
        """Return the experiment so far."""
        runs = [self._finished[unit.key] for unit in self._plan.units if unit.key in self._finished]
        return of_row(
            self._row,
            runs,
            skipped=self._plan.skipped,
            planned=len(self._plan.units),
            stopped=self._work.stopped,
        )

    async def _paid(self, unit: PlannedRun) -> None:
        async with self._work.paid(lambda: unit.estimate, self._used_up) as may_run:
            if may_run:
                try:
                    await self._make(unit)
                except TraceDatabaseError as error:
                    self._work.stop(error)

    async def _make(self, unit: PlannedRun) -> None:
        recording = await run_sync(self._read, unit)
        if recording is None:
            return
        outcome, error = await self._runner.repeat(recording, unit.repeat)
        if outcome is None or (outcome.status == "failed" and is_fatal(error)):
            self._work.stop(error if outcome is not None else self._used_up())
            return
        if not outcome.after.tokens and outcome.after.model_calls:
            self._runner.spending.spend({name: amount or 0 for name, amount in unit.estimate.items()})
        with anyio.CancelScope(shield=True):  # it has cost something, so it is stored
            await run_sync(write_run, self._cohort.store.path, self._row, outcome)
        self._finished[unit.key] = outcome
        self._report()

    def _read(self, unit: PlannedRun) -> Recording | None:
        try:
            return Recording.of(self._cohort.store.trace(unit.trace_id), run=unit.run_id)
        except TraceDatabaseError:
            raise
        except KantanAgentsError:  # it was pruned, at least in part, after the plan was made
            return None

    def _used_up(self) -> ReplayBudgetError:
        reason = (
            f"it is used up, after {self._runner.spending.tokens:,} tokens with those of unfinished runs; "
            "start it again with a higher limit, and it goes on where it has stopped"
        )
        return ReplayBudgetError(reason=reason)

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(len(self._finished), len(self._plan.units))
