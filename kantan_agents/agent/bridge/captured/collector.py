"""The capture of a run, as the captures of its calls see it."""

from __future__ import annotations

from typing import Any, Protocol

from kantan_agents.agent.bridge.captured.requests import Requests
from kantan_agents.core.interception import current_tool_call, error_message
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import code_of
from kantan_agents.tool_rules import RuleLayers


class Collector(Protocol):
    """Collects the record of a run; ``size`` is in bytes, without the requests."""

    run: Run
    requests: Requests
    rules: RuleLayers | None
    size: int

    def elapsed(self) -> float:
        """Return the seconds since the run started."""
        ...

    def failed(self, what: str, error: Exception) -> None:
        """Note that something could not be captured."""
        ...


def error_data(run: Any, error: BaseException) -> dict[str, Any]:
    """Return an error as redacted JSON data."""
    data: dict[str, Any] = {"type": type(error).__name__, "message": error_message(run, error)}
    code, status = code_of(error), getattr(error, "status_code", getattr(error, "status", None))
    if code is not None:
        data["code"] = code
    if isinstance(status, int):
        data["status"] = status
    return data


def parent_call(run: Run) -> str | None:
    """Return the id of the tool call around a call."""
    outer = current_tool_call.get()
    return outer.call_id if outer is not None and outer.run is run else None
