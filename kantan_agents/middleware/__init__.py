"""Ready-made middleware, all optional. Pass instances as ``Agent(middleware=[...])``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.package_names import lazy_names

if TYPE_CHECKING:
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kantan_agents.middleware.approve.approve": ("Approve",),
        "kantan_agents.middleware.approve.calls": ("Approved", "PendingCall", "Rejected"),
        "kantan_agents.middleware.approve.waiting_runs": ("decide", "pending", "resume", "to_json"),
        "kantan_agents.middleware.budget.budget": ("Budget", "OnUnknownUsage", "Prices"),
        "kantan_agents.middleware.budget.ledger": ("BudgetUse",),
        "kantan_agents.middleware.cache.cache": ("Cache", "CacheStats"),
        "kantan_agents.middleware.cache.sqlite": ("SQLiteStore",),
        "kantan_agents.middleware.cache.stores": ("CacheStore", "MemoryStore"),
        "kantan_agents.middleware.compact_history.compact_history": ("CompactHistory", "OnTooLong"),
        "kantan_agents.middleware.deadline": ("Deadline",),
        "kantan_agents.middleware.fallback": ("Fallback",),
        "kantan_agents.middleware.hedge.hedge": ("Hedge", "HedgeStats"),
        "kantan_agents.middleware.keys": ("Per",),
        "kantan_agents.middleware.limit_concurrency.limit_concurrency": ("LimitConcurrency", "Limited"),
        "kantan_agents.middleware.limit_concurrency.places": ("ConcurrencyStats", "KeyStats"),
        "kantan_agents.middleware.redact.redact": ("Redact",),
        "kantan_agents.middleware.retry": ("Retry",),
        "kantan_agents.middleware.slash_commands.slash_commands": ("SlashCommands",),
        "kantan_agents.middleware.slash_commands.user_rules": ("UserRules",),
        "kantan_agents.middleware.tool_errors": ("ToolErrorPolicy", "ToolErrors"),
    },
)
