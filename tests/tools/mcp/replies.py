"""What the model was sent."""

from __future__ import annotations

from typing import Any

from kantan_agents.testing import RecordedRequest


def outputs_in(request: RecordedRequest) -> list[Any]:
    """Return the outputs of tools in a request to the model."""
    return [item["output"] for item in request.input if item.get("type") == "function_call_output"]
