"""For tests of agents: a scripted model, and a model server that needs no network.

``ScriptedModel`` and its companions are the SDK's own where it has them (``agents.testing``), else
this package's with the same names and shapes.
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
