"""Chooses the arms of runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final, Literal
from weakref import ref

from agents import RunState

from kantan_agents.agent.bridge.paused_runs import chosen_in, context_of, continue_with, owner_in
from kantan_agents.agent.per_run import limited
from kantan_agents.agent.running.chosen_arm import ChosenArm, for_states
from kantan_agents.errors import MissingUnitError
from kantan_agents.lab.rollout.arm import Arm
from kantan_agents.lab.rollout.assignment import Assignment
from kantan_agents.lab.rollout.live.process_rollouts import limits_of, shared_for
from kantan_agents.lab.rollout.live.shared_rollout import NO_DATABASE, SharedRollout
from kantan_agents.lab.rollout.unit import UnitSource, shown_unit, unit_in
from kantan_agents.traces.capture import RunRecord
from kantan_agents.traces.metadata import ARM, ARM_SHARE, NOT_DRAWN, ROLLOUT, ROLLOUT_UNIT

NO_UNIT: Final = "no unit"


class _Creation:
    """One lock for all agents: an agent that holds a lock cannot be copied."""

    creating = Lock()


def _after_fork() -> None:
    _Creation.creating = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class ArmChooser:
    """Chooses the arms of one agent, the control."""

    def __init__(
        self,
        agent: Any,
        arms: Mapping[str, Arm],
        weights: tuple[float, ...],
        unit: UnitSource,
        on_missing_unit: Literal["control", "raise"],
        shared: SharedRollout,
    ) -> None:
        self._agent = ref(agent)
        self._names = tuple(arms)
        self._arms = tuple(arms.values())
        self._limits = tuple(arm.limits(name) for name, arm in arms.items())
        self.control_limits = self._limits[0]
        self._made: dict[int, Any] = {}
        self._plain: dict[int, Any] = {}
        self._unit, self._on_missing_unit = unit, on_missing_unit
        self._shared = shared
        shared.limits = dict(zip(self._names, self._limits, strict=True))
        self._assignment = Assignment(shared.name, weights)

    def __call__(self, input: Any, context: Any) -> ChosenArm:
        """Choose for a new run."""
        if isinstance(input, RunState):
            return self._for_state(input, context_of(input) if context is None else context)
        return self._drawn(context)

    def _drawn(self, context: Any) -> ChosenArm:
        shared = self._shared
        current = shared.current
        if current.problem is not None:
            if current.problem == NO_DATABASE:
                shared.warn_once()
            return self._control(current.problem)
        try:
            unit, reason = unit_in(context, self._unit)
        except Exception as error:  # noqa: BLE001 - raised in the run, or the control
            return self._without_unit(f"raised {type(error).__name__}: {error}", error)
        if unit is None:
            return self._without_unit(reason, None)
        assigned = self._assignment.of(unit, current.share)
        if current.winner is not None:
            arm, share = current.winner, 1.0
        else:
            arm, share = assigned.arm, self._assignment.share_of(assigned.arm, current.share)
        metadata = {
            ROLLOUT: shared.name,
            ARM: self._names[arm],
            ARM_SHARE: share,
            ROLLOUT_UNIT: assigned.unit,
        }
        return ChosenArm(self._agent_of(arm), self._names[arm], metadata, self._limits[arm])

    def _for_state(self, state: RunState[Any, Any], context: Any) -> ChosenArm:
        recorded = chosen_in(state)
        if recorded.get(ROLLOUT) == self._shared.name and recorded.get(ARM) in self._names:
            arm = self._names.index(recorded[ARM])
            chosen = ChosenArm(self._agent_of(arm), self._names[arm], recorded, self._limits[arm])
        else:
            chosen = chosen_for_state(state, self._control_agent()) or self._drawn(context)
        owner = owner_in(state)
        # After a handoff, a state continues with another agent, which has no part in the rollout.
        if owner is not chosen.agent and any(owner is one for one in (self._agent(), *self._made.values())):
            continue_with(state, chosen.agent)
        return chosen

    def recorded(self, record: RunRecord) -> Any:
        """Return the Agent of a recorded run, by its prompt for older ones."""
        prompt = record.agents[0].prompt if record.agents else None
        if record.arm in self._names:
            number = self._names.index(record.arm)
        else:
            fitting = (n for n, arm in enumerate(self._arms) if prompt and arm.prompt_id == prompt.id)
            number = next(fitting, 0)
        with _Creation.creating:
            if number not in self._plain:
                agent = self._created(number)
                agent._choose = Always(agent, self._names[number], self._limits[number])
                self._plain[number] = agent
            return self._plain[number]

    def _control_agent(self) -> Any:
        agent = self._agent()
        assert agent is not None
        return agent

    def _agent_of(self, arm: int) -> Any:
        """Return the agent with an arm, created for its first run."""
        control = self._control_agent()
        if arm == 0:
            return control
        made = self._made.get(arm)
        if made is None:
            with _Creation.creating:
                made = self._made.get(arm)
                if made is None:
                    made = self._made[arm] = self._created(arm)
        # The only option that can change. By identity: `==` of the SDK's agents never ends on a cycle.
        if [*map(id, made.handoffs)] != [*map(id, control.handoffs)]:
            made.handoffs = control.handoffs
        return made

    def _created(self, arm: int) -> Any:
        control = self._control_agent()
        agent = control.clone(**self._arms[arm].changes)
        agent.observers = control.observers  # subscriptions are for all runs of the agent
        agent.arm_of = ref(control)
        rules = limited(agent.standing_rules, None)
        agent.standing_rules = rules.with_limits(*self._limits[arm]) if self._limits[arm] else rules
        return agent

    def _control(self, reason: str, mistake: Exception | None = None) -> ChosenArm:
        metadata = {ROLLOUT: self._shared.name, ARM: self._names[0], NOT_DRAWN: reason}
        return ChosenArm(self._control_agent(), self._names[0], metadata, self._limits[0], mistake)

    def _without_unit(self, reason: str, error: Exception | None) -> ChosenArm:
        self._shared.warn_of_unit(shown_unit(self._unit), reason)
        if self._on_missing_unit == "control":
            return self._control(NO_UNIT)
        mistake = MissingUnitError(rollout=self._shared.name, unit=shown_unit(self._unit), reason=reason)
        mistake.__cause__ = error
        return self._control(NO_UNIT, mistake)

    def __getstate__(self) -> dict[str, Any]:
        # A reference cannot be copied, and the state belongs to the process. Agents of arms are created
        # again.
        shared = self._shared
        known = (shared.name, shared.plan, shared.on_verdict, shared.path)
        return {**vars(self), "_agent": self._agent(), "_made": {}, "_plain": {}, "_shared": known}

    def __setstate__(self, state: dict[str, Any]) -> None:
        shared = shared_for(*state["_shared"])
        vars(self).update({**state, "_agent": ref(state["_agent"]), "_shared": shared})
        shared.limits = dict(zip(self._names, self._limits, strict=True))


class Always:
    """Chooses the same agent, arm and limits for every run."""

    def __init__(self, agent: Any, arm: str, limits: tuple[tuple[str, Any], ...]) -> None:
        self._agent, self._arm, self.control_limits = agent, arm, limits

    def __call__(self, input: Any, context: Any) -> ChosenArm:
        """Return the agent and its limits."""
        del input, context
        return ChosenArm(self._agent, self._arm, {}, self.control_limits)

    def recorded(self, record: RunRecord) -> Any:
        """Return the agent."""
        del record
        return self._agent


def chosen_for_state(state: RunState[Any, Any], agent: Any) -> ChosenArm | None:
    """Return the arm of a paused run after a handoff."""
    recorded = chosen_in(state)
    name, arm = recorded.get(ROLLOUT), recorded.get(ARM)
    if not isinstance(name, str) or not isinstance(arm, str):
        return None
    return ChosenArm(agent, arm, recorded, limits_of(name, arm))


for_states.append(chosen_for_state)
