"""Ready-made middleware, all optional. Pass instances as ``Agent(middleware=[...])``."""

from kantan_agents.middleware.approve.approve import Approve
from kantan_agents.middleware.approve.calls import Approved, PendingCall, Rejected
from kantan_agents.middleware.approve.waiting_runs import decide, pending, resume, to_json
from kantan_agents.middleware.budget.budget import Budget, OnUnknownUsage, Prices
from kantan_agents.middleware.budget.ledger import BudgetUse
from kantan_agents.middleware.cache.cache import Cache, CacheStats
from kantan_agents.middleware.cache.sqlite import SQLiteStore
from kantan_agents.middleware.cache.stores import CacheStore, MemoryStore
from kantan_agents.middleware.compact_history.compact_history import CompactHistory, OnTooLong
from kantan_agents.middleware.deadline import Deadline
from kantan_agents.middleware.fallback import Fallback
from kantan_agents.middleware.hedge.hedge import Hedge, HedgeStats
from kantan_agents.middleware.keys import Per
from kantan_agents.middleware.limit_concurrency.limit_concurrency import LimitConcurrency, Limited
from kantan_agents.middleware.limit_concurrency.places import ConcurrencyStats, KeyStats
from kantan_agents.middleware.redact.redact import Redact
from kantan_agents.middleware.retry import Retry
from kantan_agents.middleware.slash_commands.slash_commands import SlashCommands
from kantan_agents.middleware.slash_commands.user_rules import UserRules
from kantan_agents.middleware.tool_errors import ToolErrorPolicy, ToolErrors

__all__ = [
    "Approve",
    "Approved",
    "Budget",
    "BudgetUse",
    "Cache",
    "CacheStats",
    "CacheStore",
    "CompactHistory",
    "ConcurrencyStats",
    "Deadline",
    "Fallback",
    "Hedge",
    "HedgeStats",
    "KeyStats",
    "LimitConcurrency",
    "Limited",
    "MemoryStore",
    "OnTooLong",
    "OnUnknownUsage",
    "PendingCall",
    "Per",
    "Prices",
    "Redact",
    "Rejected",
    "Retry",
    "SQLiteStore",
    "SlashCommands",
    "ToolErrorPolicy",
    "ToolErrors",
    "UserRules",
    "decide",
    "pending",
    "resume",
    "to_json",
]
