"""Test agents without a network: scripted model, offline server, evaluations as tests.

``ScriptedModel`` and ``OfflineServer`` play the same scripts; ``ReplyLike`` is the type of their replies.
``ScriptedModel`` and its companions are the SDK's (``agents.testing``), or for older SDKs this package's.

Names are loaded on first use: pytest imports this package for the plugin, and must not import the SDK for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.package_names import lazy_names

if TYPE_CHECKING:
    from kantan_agents.testing.evaluated_test import UncertainPassRateWarning, evaluated
    from kantan_agents.testing.offline import OfflineServer
    from kantan_agents.testing.profiles import PROFILES, Profile
    from kantan_agents.testing.recorded_request import RecordedRequest
    from kantan_agents.testing.replies import InvalidScriptError, Reply, ReplyLike, ScriptedToolCall
    from kantan_agents.testing.script import Script
    from kantan_agents.testing.scripted_model import ScriptedModel
    from kantan_agents.testing.steps import (
        ModelStep,
        RecordedCall,
        UnconsumedModelSteps,
        UnexpectedModelCall,
        assistant_message,
        function_call,
    )

__all__ = [
    "PROFILES",
    "InvalidScriptError",
    "ModelStep",
    "OfflineServer",
    "Profile",
    "RecordedCall",
    "RecordedRequest",
    "Reply",
    "ReplyLike",
    "Script",
    "ScriptedModel",
    "ScriptedToolCall",
    "UncertainPassRateWarning",
    "UnconsumedModelSteps",
    "UnexpectedModelCall",
    "assistant_message",
    "evaluated",
    "function_call",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kantan_agents.testing.evaluated_test": ("UncertainPassRateWarning", "evaluated"),
        "kantan_agents.testing.offline": ("OfflineServer",),
        "kantan_agents.testing.profiles": ("PROFILES", "Profile"),
        "kantan_agents.testing.recorded_request": ("RecordedRequest",),
        "kantan_agents.testing.replies": ("InvalidScriptError", "Reply", "ReplyLike", "ScriptedToolCall"),
        "kantan_agents.testing.script": ("Script",),
        "kantan_agents.testing.scripted_model": ("ScriptedModel",),
        "kantan_agents.testing.steps": (
            "ModelStep",
            "RecordedCall",
            "UnconsumedModelSteps",
            "UnexpectedModelCall",
            "assistant_message",
            "function_call",
        ),
    },
)
