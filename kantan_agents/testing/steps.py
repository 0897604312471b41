"""The SDK's classes for scripted models, or this package's."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kantan_agents.testing.scripted import (
        ModelScriptError,
        ModelStep,
        RecordedCall,
        UnconsumedModelSteps,
        UnexpectedModelCall,
        assistant_message,
        function_call,
    )
    from kantan_agents.testing.scripted import ScriptedModel as StepModel
else:
    try:
        from agents.testing import ModelCall as RecordedCall
        from agents.testing import (
            ModelScriptError,
            ModelStep,
            UnconsumedModelSteps,
            UnexpectedModelCall,
            assistant_message,
            function_call,
        )
        from agents.testing import ScriptedModel as StepModel
    except ModuleNotFoundError:
        from kantan_agents.testing.scripted import (
            ModelScriptError,
            ModelStep,
            RecordedCall,
            UnconsumedModelSteps,
            UnexpectedModelCall,
            assistant_message,
            function_call,
        )
        from kantan_agents.testing.scripted import ScriptedModel as StepModel

__all__ = [
    "ModelScriptError",
    "ModelStep",
    "RecordedCall",
    "StepModel",
    "UnconsumedModelSteps",
    "UnexpectedModelCall",
    "assistant_message",
    "function_call",
]
