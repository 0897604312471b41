"""Runs that survive the end of their process, in queues and across machines, on an existing engine."""

from typing import TYPE_CHECKING, Any

from kantan_agents.durable.engines.engine import Limits
from kantan_agents.durable.middleware import Durable
from kantan_agents.durable.outcome import DurableOutcome, DurableRun
from kantan_agents.durable.runs import DurableRuns
from kantan_agents.durable.storage.approvals import WaitingCall
from kantan_agents.durable.storage.events import StoredEvent

if TYPE_CHECKING:
    from kantan_agents.durable.http.app import approvals_app

__all__ = [
    "Durable",
    "DurableOutcome",
    "DurableRun",
    "DurableRuns",
    "Limits",
    "StoredEvent",
    "WaitingCall",
    "approvals_app",
]


def __getattr__(name: str) -> Any:
    # On first use: most processes serve no HTTP.
    if name == "approvals_app":
        from kantan_agents.durable.http.app import approvals_app

        return approvals_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
