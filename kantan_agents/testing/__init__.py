"""Test agents without a network: a scripted model and an offline model server; make tests of evaluations.

Both play the same scripts; ``ReplyLike`` is what a script may contain.
``ScriptedModel`` extends the SDK's (``agents.testing``), and its companions are the SDK's. For older SDKs,
this package has classes with the same names and shapes.

Names are loaded on first use: pytest imports this package for the plugin, and must not import the SDK for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_HOMES = {
    "PROFILES": "profiles",
    "InvalidScriptError": "replies",
    "ModelStep": "steps",
    "OfflineServer": "offline",
    "Profile": "profiles",
    "RecordedCall": "steps",
    "RecordedRequest": "recorded_request",
    "Reply": "replies",
    "ReplyLike": "replies",
    "Script": "script",
    "ScriptedModel": "scripted_model",
    "ScriptedToolCall": "replies",
    "UncertainPassRateWarning": "evaluated_test",
    "UnconsumedModelSteps": "steps",
    "UnexpectedModelCall": "steps",
    "assistant_message": "steps",
    "evaluated": "evaluated_test",
    "function_call": "steps",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
