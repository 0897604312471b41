"""``ImproveArguments``: the checked arguments of a search, and its key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
from agents import ModelSettings, RunConfig

from kantan_agents.agent import Agent
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.dataset.assignment import checked_seed
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.experiment.identity import identity_of, plain, run_options
from kantan_agents.lab.experiment.prices import Prices
from kantan_agents.lab.experiment.run_config import checked_config
from kantan_agents.lab.experiment.spending import spending_limits
from kantan_agents.lab.improve.folder import Folder, default_folder
from kantan_agents.lab.improve.improvement import ImproveProgress
from kantan_agents.lab.improve.judge import judge_of
from kantan_agents.lab.improve.limits import CandidateLimits
from kantan_agents.lab.improve.target import ImproveTarget
from kantan_agents.lab.replay.cohort import Cohort
from kantan_agents.support.arguments import checked_int, checked_number, checked_path, checked_text, shown
from kantan_agents.traces.capture.canonical import content_hash
from kantan_agents.traces.store import TraceStore

_SELECTION: Final = ("last", "sample", "limit")


@attrs.frozen
class SearchOptions:
    """How long and where a search looks; ``sample`` is the minibatch."""

    rounds: int
    sample: int
    seed: int
    perfect: float


@attrs.frozen
class RunOptions:
    """How candidates are run."""

    live: frozenset[str]
    concurrency: int
    prices: Mapping[str, tuple[float, float]] | None
    context: Mapping[str, Any] | None
    run_config: RunConfig | Mapping[str, Any] | None

    @property
    def priced(self) -> Prices:
        """The prices, checked."""
        return Prices.of(self.prices)


@attrs.frozen
class ImproveArguments:
    """The arguments of ``improve``; ``selection`` is for ``Cohort.select`` if ``cohort`` is None."""

    agent: Any
    store: TraceStore
    judge: Evaluator
    prompt: str | None
    version: str | None
    cohort: Cohort | None
    selection: Mapping[str, Any]
    reflection_model: Any
    reflection_settings: ModelSettings | None
    limits: Mapping[str, float]
    search: SearchOptions
    split: tuple[float, float, float]
    max_length: int | None
    max_cost_increase: float
    runs: RunOptions
    new_version: str | None
    out: Path | None
    progress: Callable[[ImproveProgress], None] | None

    def folder(self, prompt: str) -> Folder:
        """Return the working folder of a search for this prompt."""
        return Folder(default_folder(prompt) if self.out is None else self.out)


def checked_arguments(agent: Any, store: Any, **options: Any) -> ImproveArguments:
    """Return the checked arguments of ``improve``; raise E75 if one is invalid."""
    if not isinstance(agent, Agent):
        raise InvalidOptionError(option="agent", reason=f"must be an Agent, not {type(agent).__name__}")
    if not isinstance(store, TraceStore):
        raise InvalidOptionError(option="store", reason=f"must be a TraceStore, not {type(store).__name__}")
    cohort = options["cohort"]
    selection = {name: options[name] for name in _SELECTION if options[name] is not None}
    _check_cohort(cohort, store, selection)
    for name in ("prompt", "version", "new_version"):
        if options[name] is not None and not checked_text(name, options[name]).strip():
            raise InvalidOptionError(option=name, reason="must not be empty")
    if options["progress"] is not None and not callable(options["progress"]):
        reason = f"must be a function, not {shown(options['progress'])}"
        raise InvalidOptionError(option="progress", reason=reason)
    prices = Prices.of(options["prices"])
    seed = checked_seed(options["seed"])
    live = options["live"]
    model = options["reflection_model"]
    judge, perfect = judge_of(options["judge"], agent, options["perfect"])
    return ImproveArguments(
        agent,
        store,
        judge,
        options["prompt"],
        options["version"],
        cohort,
        {**selection, "seed": seed},
        agent.given.model if model is None else model,
        _checked_settings(options["reflection_settings"]),
        spending_limits(options["max_tokens"], options["max_cost"], prices),
        SearchOptions(
            checked_int("rounds", options["rounds"], 1),
            checked_int("minibatch", options["minibatch"], 1),
            seed,
            perfect,
        ),
        options["split"],
        options["max_length"],
        checked_number("max_cost_increase", options["max_cost_increase"]),
        RunOptions(
            frozenset((live,) if isinstance(live, str) else live),
            checked_int("concurrency", options["concurrency"], 1),
            options["prices"],
            options["context"],
            options["run_config"],
        ),
        options["new_version"],
        None if options["out"] is None else Path(checked_path("out", options["out"])),
        options["progress"],
    )


def _checked_settings(given: Any) -> ModelSettings | None:
    if given is None or isinstance(given, ModelSettings):
        return given
    reason = f"must be ModelSettings, not {type(given).__name__}"
    raise InvalidOptionError(option="reflection_settings", reason=reason)


def _described(settings: ModelSettings | None) -> dict[str, Any]:
    if settings is None:
        return {}
    extra = {name: value for name, value in (settings.extra_args or {}).items() if name != "timeout"}
    found = {**vars(settings), "max_tokens": None, "extra_args": extra or None}
    return {name: plain(value) for name, value in found.items() if value is not None}


def _check_cohort(cohort: Any, store: TraceStore, selection: Mapping[str, Any]) -> None:
    if cohort is None:
        return
    if not isinstance(cohort, Cohort):
        raise InvalidOptionError(option="cohort", reason=f"must be a Cohort, not {type(cohort).__name__}")
    if cohort.store.path != store.path:
        raise InvalidOptionError(option="cohort", reason=f"is of another database, {cohort.store.path}")
    if selection:
        reason = "selects runs, and the cohort has them; use one of both"
        raise InvalidOptionError(option=next(iter(selection)), reason=reason)


async def search_key(asked: ImproveArguments, target: ImproveTarget, limits: CandidateLimits) -> str:
    """Return a hash of all arguments that change the steps of a search, except budget and rounds."""
    config = checked_config(asked.runs.run_config)
    model = asked.reflection_model
    old = target.old
    described: dict[str, Any] = {
        "agent": await identity_of("improve", asked.agent, run_options(config, asked.runs.context or {}, {})),
        "old": [old.name, old.version, old.text, old.strict, old.literal],
        "judge": [asked.judge.name, asked.judge.version],
        "reflection": model if isinstance(model, str) else getattr(model, "model", type(model).__name__),
        "search": {**attrs.asdict(asked.search), "rounds": None},
        "split": list(asked.split),
        "limits": [limits.max_length, limits.max_cost_increase],
        "live": sorted(asked.runs.live),
        "prices": {name: list(pair) for name, pair in (asked.runs.prices or {}).items()},
        "selection": {name: str(value) for name, value in asked.selection.items()},
        "new_version": asked.new_version,
    }
    if settings := _described(asked.reflection_settings):
        described["reflection_settings"] = settings
    return content_hash(plain(described))
