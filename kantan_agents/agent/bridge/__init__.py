"""The objects given to the SDK: agents, models, run configurations and hooks."""

from kantan_agents.agent.bridge.guarded_agent import CHILDREN
from kantan_agents.agent.bridge.handoffs import HandoffLinks, link_handoffs
from kantan_agents.agent.bridge.hooks import observing_hooks
from kantan_agents.agent.bridge.paused_runs import context_of, guard_resumed
from kantan_agents.agent.bridge.quick_agents import QuickSettings
from kantan_agents.agent.bridge.run_config import (
    config_for_delegated,
    config_with_model,
    effective_run_config,
)
from kantan_agents.agent.bridge.sdk_agent import SDKAgent
from kantan_agents.agent.bridge.server_offers import list_servers, offers_of
from kantan_agents.agent.bridge.storable_results import detach_result, without_result
from kantan_agents.agent.bridge.streamed_run import StopAfterTurn, drain_streamed_run
from kantan_agents.agent.bridge.wrap_models import observe_models, unobserved

__all__ = [
    "CHILDREN",
    "HandoffLinks",
    "QuickSettings",
    "SDKAgent",
    "StopAfterTurn",
    "config_for_delegated",
    "config_with_model",
    "context_of",
    "detach_result",
    "drain_streamed_run",
    "effective_run_config",
    "guard_resumed",
    "link_handoffs",
    "list_servers",
    "observe_models",
    "observing_hooks",
    "offers_of",
    "unobserved",
    "without_result",
]
