"""Runs that survive the end of their process, in queues and across machines, on an existing engine."""

from kantan_agents.durable.engines.engine import Limits
from kantan_agents.durable.middleware import Durable
from kantan_agents.durable.outcome import DurableOutcome, DurableRun
from kantan_agents.durable.runs import DurableRuns
from kantan_agents.durable.storage.approvals import WaitingCall
from kantan_agents.durable.storage.events import StoredEvent

__all__ = [
    "Durable",
    "DurableOutcome",
    "DurableRun",
    "DurableRuns",
    "Limits",
    "StoredEvent",
    "WaitingCall",
]
