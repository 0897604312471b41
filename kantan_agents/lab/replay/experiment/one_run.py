"""Repeats one recorded run with a changed agent."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import attrs
from agents import RunConfig

from kantan_agents.core.events import Event
from kantan_agents.errors import InvalidChangeError
from kantan_agents.lab.experiment.spending import Spending
from kantan_agents.lab.replay.change import Change
from kantan_agents.lab.replay.cohort import recorded_figures
from kantan_agents.lab.replay.experiment.comparing import (
    changed_decisions,
    changed_fields,
    is_wording,
    runs_replayed,
    same_failure,
)
from kantan_agents.lab.replay.experiment.outcome import ChangedDecision, RunOutcome, Status
from kantan_agents.lab.replay.experiment.plan import WantedExperiment
from kantan_agents.lab.replay.experiment.playback import CounterfactualPlayback
from kantan_agents.lab.replay.playback import output_of
from kantan_agents.lab.replay.recording import Recording
from kantan_agents.lab.replay.run_again import context_of, run_again
from kantan_agents.traces.capture.canonical import canonical, copied
from kantan_agents.traces.capture.playback import current_playback
from kantan_agents.traces.store.experiment_keys import EXPERIMENT_KEY, REPLAYED_KEY


def check_effect(config: RunConfig, changes: Iterable[Change]) -> None:
    """Raise E94 if the run configuration overrides a change."""
    settings = vars(config.model_settings) if config.model_settings is not None else {}
    fixed = {f"settings.{name}" for name, value in settings.items() if value is not None}
    fixed |= {"model"} if config.model is not None else set()
    for change in changes:
        for what in change.what.split(", "):
            if what in fixed:
                reason = "the run_config has another value, which wins over that of the agent"
                raise InvalidChangeError(change=what, reason=reason)


@attrs.frozen
class Runner:
    """Performs the runs of an experiment."""

    name: str
    wanted: WantedExperiment
    spending: Spending

    def notice(self, event: Event) -> None:
        """Pass an event to its repetition; a handler of the changed agent."""
        playback = current_playback.get()
        if not isinstance(playback, CounterfactualPlayback):
            return
        used = playback.seen.add(event)
        if used is not None:
            self.spending.count(used.tokens, used.cost)

    async def repeat(self, recording: Recording, number: int) -> tuple[RunOutcome | None, Exception | None]:
        """Repeat a recorded run and compare it; return its outcome, None without budget, and its error."""
        playback = CounterfactualPlayback(recording, self.wanted, self.spending)
        root, agent = recording.root, self.wanted.after
        metadata = {
            **(self.wanted.config.trace_metadata or {}),
            EXPERIMENT_KEY: self.name,
            REPLAYED_KEY: root.id,
        }
        options = {"run_config": dataclasses.replace(self.wanted.config, trace_metadata=metadata)}
        context = context_of(root, self.wanted.context)
        if self.wanted.run_rules is not None:
            context["tool_rules"] = copied(self.wanted.run_rules)
        token = current_playback.set(playback)
        returned: dict[str, Any] | None = None
        error: Exception | None = None
        try:
            returned = await run_again(agent, root, context, options)
        except Exception as raised:  # noqa: BLE001 - any error of the run is its result
            error = raised
        finally:
            current_playback.reset(token)
        return (None if playback.is_broke else self._outcome(playback, number, returned, error)), error

    def _outcome(
        self,
        playback: CounterfactualPlayback,
        number: int,
        returned: dict[str, Any] | None,
        error: Exception | None,
    ) -> RunOutcome:
        recording, seen = playback.recording, playback.seen
        root = recording.root
        output = None if returned is None else output_of(returned)
        if playback.new_call is None and playback.refused is None and seen.waits:
            reason = "it waits for an approval, and the recorded run has none for this call"
            playback.diverge(root.agent, _waiting(returned), "", reason)
        status, decisions, message = _compared(playback, output, playback.refused or error)
        return RunOutcome(
            recording.trace_id,
            root.id,
            number,
            status,
            tuple(decisions),
            playback.new_call,
            message,
            recorded_figures(runs_replayed(recording, seen), self.wanted.prices),
            seen.used,
            root.output,
            output,
            tuple(seen.simulated),
            tuple(seen.live),
            seen.trace_id if _is_recorded(seen.trace_id) else None,
        )


def _compared(
    playback: CounterfactualPlayback, output: Any, error: Exception | None
) -> tuple[Status, list[ChangedDecision], str | None]:
    recording, root = playback.recording, playback.recording.root
    if playback.new_call is not None:
        return "diverged", _new_refusals(playback), None
    if error is not None and not same_failure(root, error):
        return "failed", _new_refusals(playback), str(error) or type(error).__name__
    decisions = changed_decisions(recording, playback.seen)
    message = None if error is None else str(error)
    if root.error is not None and error is None:
        gone = root.error
        decisions.append(ChangedDecision("error", root.agent, gone.type, gone.message, None))
    elif error is None and canonical(output) != canonical(root.output):
        if not is_wording(root.output, output):
            decisions += changed_fields(root.agent, root.output, output)
        elif not decisions:
            return "wording", [], None
    return ("changed" if decisions else "same"), decisions, message


def _new_refusals(playback: CounterfactualPlayback) -> list[ChangedDecision]:
    found = changed_decisions(playback.recording, playback.seen)
    return [one for one in found if one.kind == "denial" and one.before is None]


def _waiting(returned: dict[str, Any] | None) -> str:
    result = None if returned is None else returned.get("result")
    names = [getattr(one, "name", None) or "" for one in getattr(result, "interruptions", ())]
    return names[0] if names else ""


def _is_recorded(trace_id: str | None) -> bool:
    return trace_id is not None and trace_id != "no-op"
