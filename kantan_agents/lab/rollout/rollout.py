"""The rollout of a new version, with guards."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from kantan_agents.agent import Agent
from kantan_agents.agent.per_run import Chooser, PerRun
from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import InvalidRolloutError
from kantan_agents.lab.experiment.prices import Prices
from kantan_agents.lab.rollout.arm import Arm, checked_arms
from kantan_agents.lab.rollout.choice import ArmChooser
from kantan_agents.lab.rollout.guard_limits import checked_guards
from kantan_agents.lab.rollout.live.process_rollouts import shared_for
from kantan_agents.lab.rollout.live.shared_rollout import OnVerdict
from kantan_agents.lab.rollout.plan import RolloutPlan, checked_shares
from kantan_agents.lab.rollout.unit import UnitSource, checked_unit, shown_unit
from kantan_agents.models.resolve import resolve_model
from kantan_agents.traces.database_url import PostgresUrl, as_place, path_of
from kantan_agents.traces.store import TraceStore


class Rollout(PerRun):
    """Instructions in several versions: each user gets one at random, while the evidence is watched.

        agent = Agent(
            "support",
            Rollout(
                {"v1": prompt_v1, "v2": prompt_v2},
                shares={"v1": 0.9, "v2": 0.1},
                unit="user.id",
                metric="rubric",
                guards={"error": 0.02, "cost": "+20%", "latency_p95": "+30%"},
                ramp=(0.1, 0.5, 1),
                prices={"gpt-6.1-terra": (1.25, 10)},
            ),
            model="gpt-6.1-terra",
        )

    Each user, or whatever ``unit`` identifies, has the same arm in every process. The trace metadata of each
    run name the rollout, the arm and its share. If a guard fires, all users immediately return to the
    control. Nothing is promoted automatically: use ``kantan-agents rollout promote``, ``promote``, or
    ``on_verdict``. If the state of the rollout cannot be read, runs get the control, and the error is logged.

    Args:
        arms: The versions by name, the control first: a ``Prompt`` or a string, or an ``Arm`` with another
            model, other settings or tool rules.
        shares: The initial share of each arm; they sum to 1. By default, the first step of ``ramp`` is
            divided evenly. Shares of 0 for all new arms wait for the first promotion.
        unit: The owner of an arm: a path in the context such as ``"user.id"``, or a function of the context.
            Its value must be a str, an int or a UUID.
        metric: The metric to improve: ``"rubric"``, the judges' scores of the runs, or the name of a metric
            that ``record_score`` records. Higher is better. None: only the guards count.
        metric_range: The lowest and the highest score. Scores outside do not count.
        score_within: Seconds from the start of a user's first run with a share within which its score must
            come; later scores do not count. A user without a score delays the verdict on the metric that
            long.
        guards: The metrics that must not get worse: ``"error"`` with the number by which the share of failed
            or canceled runs may rise; ``"cost"``, ``"tokens"``, ``"latency_p50"``, ``"latency_p95"`` and the
            like with ``"+20%"``.
        alpha: The probability of a false alarm, and of a false promotion, however often you look.
        ramp: The shares of all new arms together, step by step. The first is the sum in ``shares``.
        store: The trace database: a ``TraceStore`` or a path. By default the one of ``record_traces``.
        name: Name of the rollout; by default built from the names of the agent and the arms.
        prices: Prices of a million input and output tokens by model; the guard ``"cost"`` needs them.
        on_missing_unit: Whether a run without a ``unit`` gets the control, or raises error E114.
        on_verdict: Called in a thread of the library with each new ``RolloutStatus``, about once a second
            while runs end. It may return ``"promote"`` or ``"stop"``.

    Raises:
        InvalidRolloutError: E110, an argument has a mistake.
        InvalidOptionError: E75, ``prices`` has a mistake.
    """

    def __init__(
        self,
        arms: Mapping[str, str | Prompt | Arm],
        *,
        shares: Mapping[str, float] | None = None,
        unit: UnitSource,
        metric: str | None = None,
        metric_range: tuple[float, float] = (0.0, 1.0),
        score_within: float = 3600.0,
        guards: Mapping[str, float | str] | None = None,
        alpha: float = 0.05,
        ramp: Sequence[float] | None = None,
        store: TraceStore | str | os.PathLike[str] | None = None,
        name: str | None = None,
        prices: Mapping[str, tuple[float, float]] | None = None,
        on_missing_unit: Literal["control", "raise"] = "control",
        on_verdict: OnVerdict | None = None,
    ) -> None:
        self._arms = checked_arms(arms)
        self._weights, self._ramp = checked_shares(shares, ramp, tuple(self._arms))
        self._unit = checked_unit(unit)
        self._metric = _checked_metric(metric)
        self._range = _checked_range(metric_range)
        self._score_within = _checked_seconds(score_within)
        self._guards = checked_guards(guards)
        self._alpha = _checked_alpha(alpha)
        self._store = _checked_store(store)
        self._name = _checked_name(name)
        self._prices = Prices.of(prices)
        if any(guard.kind == "cost" for guard in self._guards) and not self._prices.of_models:
            reason = "has 'cost', which needs prices={'model': (input, output)} per million tokens"
            raise InvalidRolloutError(option="guards", reason=reason)
        if on_missing_unit not in ("control", "raise"):
            reason = f"must be 'control' or 'raise', not {on_missing_unit!r}"
            raise InvalidRolloutError(option="on_missing_unit", reason=reason)
        self._on_missing_unit = on_missing_unit
        if on_verdict is not None and not callable(on_verdict):
            raise InvalidRolloutError(
                option="on_verdict", reason=f"must be a function, not {type(on_verdict).__name__}"
            )
        self._on_verdict = on_verdict

    @property
    def arms(self) -> Mapping[str, Arm]:
        """The arms by name, the control first."""
        return dict(self._arms)

    @property
    def control(self) -> str | Prompt:
        """The instructions of the control."""
        return next(iter(self._arms.values())).prompt

    def name_for(self, agent: str) -> str:
        """Return the name of the rollout.

        Args:
            agent: Name of the agent.
        """
        return self._name or f"{agent}:{'-'.join(self._arms)}"

    def plan_for(self, agent: str) -> RolloutPlan:
        """Return the stored definition of the rollout.

        Args:
            agent: Name of the agent.
        """
        return RolloutPlan(
            agent=agent,
            arms={name: arm.described() for name, arm in self._arms.items()},
            weights=self._weights,
            ramp=self._ramp,
            unit=shown_unit(self._unit),
            metric=self._metric,
            metric_range=self._range,
            score_within=self._score_within,
            guards=self._guards,
            alpha=self._alpha,
            prices=self._prices,
        )

    def chooser(self, agent: Agent[Any]) -> Chooser:
        """Return the chooser of the arms of an agent's runs; for the library.

        Raises:
            RolloutConflictError: E111, this process has another rollout of this name or of this agent.
            ModelNotFoundError: E19, the model of an arm is unknown.
        """
        for arm in self._arms.values():
            if arm.model is not None:
                resolve_model(arm.model, agent.provider_factory)
        plan = self.plan_for(agent.name)
        shared = shared_for(self.name_for(agent.name), plan, self._on_verdict, self._store)
        shared.observers.add(agent.observers)
        return ArmChooser(agent, self._arms, self._weights, self._unit, self._on_missing_unit, shared)

    def __repr__(self) -> str:
        name = "" if self._name is None else f", name={self._name!r}"
        return f"Rollout({list(self._arms)}, unit={shown_unit(self._unit)!r}, metric={self._metric!r}{name})"


def _checked_metric(metric: Any) -> str | None:
    if metric is None or (isinstance(metric, str) and metric.strip()):
        return metric
    raise InvalidRolloutError(option="metric", reason=f"must be a name such as 'rubric', not {metric!r}")


def _checked_range(given: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        low, high = 0.0, 0.0
    if not -1e300 < low < high < 1e300:  # noqa: PLR2004 - finite, and so is the difference
        reason = f"must be the lowest and the highest score, such as (0, 1), not {given!r}"
        raise InvalidRolloutError(option="metric_range", reason=reason)
    return low, high


def _checked_seconds(seconds: Any) -> float:
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if is_number and 0 < seconds < 1e10:  # noqa: PLR2004 - three centuries
        return float(seconds)
    reason = f"must be seconds, more than 0, such as 3600, not {seconds!r}"
    raise InvalidRolloutError(option="score_within", reason=reason)


def _checked_alpha(alpha: Any) -> float:
    if isinstance(alpha, (int, float)) and not isinstance(alpha, bool) and 0 < alpha < 1:
        return float(alpha)
    raise InvalidRolloutError(option="alpha", reason=f"must be between 0 and 1, such as 0.05, not {alpha!r}")


def _checked_store(store: Any) -> Path | None:
    if store is None:
        return None
    if isinstance(store, TraceStore):
        return store.path
    if isinstance(store, (str, os.PathLike, PostgresUrl)):
        return path_of(as_place(store))
    reason = f"must be a TraceStore or a path, not {type(store).__name__}"
    raise InvalidRolloutError(option="store", reason=reason)


def _checked_name(name: Any) -> str | None:
    if name is None or (isinstance(name, str) and name.strip()):
        return name
    raise InvalidRolloutError(option="name", reason=f"must be a text, not {name!r}")
