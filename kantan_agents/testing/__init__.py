"""Test agents without a network: a scripted model and an offline model server.

Both play the same scripts; ``ReplyLike`` is what a script may contain.
``ScriptedModel`` extends the SDK's (``agents.testing``), and its companions are the SDK's. For older SDKs,
this package has classes with the same names and shapes.
"""

from kantan_agents.testing.offline import OfflineServer, RecordedRequest
from kantan_agents.testing.profiles import PROFILES, Profile
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
    "UnconsumedModelSteps",
    "UnexpectedModelCall",
    "assistant_message",
    "function_call",
]
