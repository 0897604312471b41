"""``StrictPlayback``: the tapes of a replay, and its first difference."""

from __future__ import annotations

import re
from typing import Any, Final

from kantan_agents.core.pipeline import Run
from kantan_agents.errors import KantanAgentsError, NotReplayableError, code_of
from kantan_agents.lab.replay.answers_from_recording import StrictTape
from kantan_agents.lab.replay.checks import Checks, difference_error
from kantan_agents.lab.replay.recording import Recording
from kantan_agents.models.structured import json_data
from kantan_agents.support.secrets import mask
from kantan_agents.traces.capture import RunRecord
from kantan_agents.traces.capture.canonical import canonical, decode
from kantan_agents.traces.capture.compare import Difference
from kantan_agents.traces.recorder.masking import mask_data
from kantan_agents.traces.recorder.plain_json import encode_anything

_ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]+\b")


class StrictPlayback:
    """Gives each run its tape, and stores the first difference."""

    def __init__(self, recording: Recording, checks: Checks) -> None:
        self.difference: KantanAgentsError | None = None
        self._recording = recording
        self._checks = checks
        self._tapes: list[StrictTape] = []
        self._recorded: dict[str, str] = {}

    def _fail(self, error: KantanAgentsError) -> None:
        self.difference = self.difference or error

    def tape_for(self, run: Run) -> StrictTape:
        """Return the tape of a run; raise E92 if it is not recorded."""
        recorded = self._recorded_run(run)
        if recorded is None:
            place = f"a run of {run.agent.name!r}"
            error = difference_error(place, [Difference("calls", None, str(run.agent.name), "added")])
            self._fail(error)
            raise error
        self._recorded[run.id] = recorded.id
        tape = StrictTape(recorded, self._checks, self._fail)
        self._tapes.append(tape)
        return tape

    def check_embedding(self, model: str) -> None:
        """Raise E93: vectors are not recorded."""
        reason = f"its tools are found with the embedding model {model!r}, whose vectors are not recorded"
        error = NotReplayableError(trace_id=self._recording.trace_id, reason=reason)
        self._fail(error)
        raise error

    def _recorded_run(self, run: Run) -> RunRecord | None:
        if not self._tapes:
            return self._recording.root
        parent = self._recorded.get(run.parent_run or "")
        if parent is None:
            return None
        taken = set(self._recorded.values())
        left = [
            one
            for one in self._recording.inside(parent)
            if one.id not in taken and one.agent == run.agent.name
        ]
        same_call = [one for one in left if one.parent_call == run.parent_call]
        return next(iter(same_call or left), None)

    def _is_done(self, run: RunRecord) -> bool:
        if run.id in self._recorded.values():
            return True
        around = next((one for one in self._recording.runs if one.id == run.parent_run), None)
        if around is None:
            return False
        tape = next((one for one in self._tapes if one.recorded is around), None)
        return self._is_done(around) if tape is None else run.parent_call in tape.played_calls

    def check_failure(self, error: Exception) -> None:
        """Raise E92 unless a run failed as the recorded one did, after as many model calls."""
        recorded = self._recording.root.error
        if recorded is None:
            raise error
        is_same = recorded.type in _names_of(error) and recorded.code == code_of(error)
        now = str(mask(_message_of(error)))
        # With a code, the message need not be equal: it may have a hint made of values that are not recorded.
        is_same_text = recorded.code is not None or _without_addresses(now) == _without_addresses(
            recorded.message
        )
        if not (is_same and is_same_text) and self._checks.counts("error"):
            before, after = recorded.message, now
            if not is_same:
                before, after = f"{recorded.type}: {before}", f"{type(error).__name__}: {after}"
            raise difference_error("the end", [Difference("error", before, after)]) from error
        for tape in self._tapes:
            tape.check_model_calls()

    def check_success(self, context: dict[str, Any]) -> None:
        """Raise E92 unless a successful run ended as recorded, with the same calls."""
        if self.difference is not None:
            raise self.difference
        for tape in self._tapes:
            tape.check_end()
        left_out = [one for one in self._recording.runs if not self._is_done(one)]
        if left_out and self._checks.counts("calls"):
            found = [Difference("calls", left_out[0].agent, None, "removed")]
            raise difference_error(f"the run of {left_out[0].agent!r}", found)
        recorded = self._recording.root
        if recorded.error is not None and self._checks.counts("error"):
            raise difference_error("the end", [Difference("error", recorded.error.message, None, "removed")])
        output = output_of(context)
        if canonical(output) != canonical(recorded.output) and self._checks.counts("answer"):
            raise difference_error("the end", [Difference("answer", recorded.output, output)])


def _names_of(error: BaseException) -> set[str]:
    return {type(error).__name__, getattr(error, "type_name", "")}


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - __str__ is user code
        return f"<{type(error).__name__}>"  # as in a record


def _without_addresses(message: str) -> str:
    return _ADDRESS.sub("0x", message)


def output_of(context: dict[str, Any]) -> Any:
    """Return the final output in its recorded form: JSON data with masked secrets."""
    result = context.get("result")
    output = json_data(getattr(result, "final_output", result))
    return mask_data(decode(encode_anything(output)), mask)
