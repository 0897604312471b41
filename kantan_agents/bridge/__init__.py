"""What the SDK sees of us: the only room that builds objects for it."""

from kantan_agents.bridge.guarded_agent import CHILDREN
from kantan_agents.bridge.handoffs import HandoffLinks, link_handoffs
from kantan_agents.bridge.hooks import telling_hooks
from kantan_agents.bridge.paused import context_of, detach_result, guard_resumed
from kantan_agents.bridge.run_config import config_for_delegated, effective_run_config
from kantan_agents.bridge.sdk_agent import SDKAgent
from kantan_agents.bridge.settings import QuickSettings
from kantan_agents.bridge.stand_ins import observe_models, unobserved
from kantan_agents.bridge.streamed import streamed_result

__all__ = [
    "CHILDREN",
    "HandoffLinks",
    "QuickSettings",
    "SDKAgent",
    "config_for_delegated",
    "context_of",
    "detach_result",
    "effective_run_config",
    "guard_resumed",
    "link_handoffs",
    "observe_models",
    "streamed_result",
    "telling_hooks",
    "unobserved",
]
