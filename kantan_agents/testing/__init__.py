"""Test agents without a network: a scripted model and an offline model server.

``ScriptedModel`` and its companions come from the SDK (``agents.testing``) if it has them. For older SDKs,
this package has classes with the same names and shapes.
"""

from typing import TYPE_CHECKING

from kantan_agents.testing.offline import OfflineServer, RecordedRequest
from kantan_agents.testing.profiles import PROFILES, Profile
from kantan_agents.testing.wire import Reply, ScriptedToolCall

if TYPE_CHECKING:
    from kantan_agents.testing.scripted import (
        ModelStep,
        RecordedCall,
        ScriptedModel,
        UnconsumedModelSteps,
        UnexpectedModelCall,
        assistant_message,
        function_call,
    )
else:
    try:
        from agents.testing import (
            ModelCall as RecordedCall,
        )
        from agents.testing import (
            ModelStep,
            ScriptedModel,
            UnconsumedModelSteps,
            UnexpectedModelCall,
            assistant_message,
            function_call,
        )
    except ModuleNotFoundError:
        from kantan_agents.testing.scripted import (
            ModelStep,
            RecordedCall,
            ScriptedModel,
            UnconsumedModelSteps,
            UnexpectedModelCall,
            assistant_message,
            function_call,
        )

__all__ = [
    "PROFILES",
    "ModelStep",
    "OfflineServer",
    "Profile",
    "RecordedCall",
    "RecordedRequest",
    "Reply",
    "ScriptedModel",
    "ScriptedToolCall",
    "UnconsumedModelSteps",
    "UnexpectedModelCall",
    "assistant_message",
    "function_call",
]
