"""Values that earlier versions stored under other names are read under the names of today."""

from __future__ import annotations

from typing import Any

import pytest

from kantan_agents import errors
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.replay.recorded_results import error_of
from kantan_agents.traces.capture import RecordedError

NAMES = {
    "EditRefusedError": errors.EditRejectedError,
    "JudgementError": errors.JudgmentError,
    "SealedDatasetError": errors.HeldOutDatasetError,
    "URLRefusedError": errors.URLRejectedError,
    "UndefinedMarkerError": errors.UndefinedPlaceholderError,
}


@pytest.mark.parametrize(("name", "kind"), NAMES.items())
def test_a_recorded_error_has_its_class_of_today(name: str, kind: type[Exception]) -> None:
    error = error_of(RecordedError(name, "The old message.", kind.code))  # type: ignore[attr-defined]
    assert type(error) is kind
    assert "The old message." in str(error)


def test_a_denied_call_of_a_stored_result_is_denied() -> None:
    stored: dict[str, Any] = {
        "case_id": "1",
        "case_hash": "h",
        "conversation": None,
        "variant": "v1",
        "repeat": 0,
        "status": "finished",
        "output": "Done.",
        "error": None,
        "trace_id": None,
        "seconds": 1.0,
        "input_tokens": 1,
        "output_tokens": 1,
        "cost": None,
        "model_calls": 1,
        "tool_calls": [{"name": "pay", "arguments": {}, "output": None, "agent": "a", "is_refused": True}],
    }
    (call,) = CaseResult.from_dict(stored, {}).tool_calls
    assert call.is_denied
