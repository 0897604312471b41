"""Translate between the protocol and Anthropic's Messages API."""

from kantan_agents.models.protocol.translate.anthropic.messages import (
    messages_from_anthropic,
    messages_to_anthropic,
)
from kantan_agents.models.protocol.translate.anthropic.output_schema import output_schema_to_anthropic
from kantan_agents.models.protocol.translate.anthropic.responses import (
    response_from_anthropic,
    response_to_anthropic,
)
from kantan_agents.models.protocol.translate.anthropic.tools import tools_from_anthropic, tools_to_anthropic

__all__ = [
    "messages_from_anthropic",
    "messages_to_anthropic",
    "output_schema_to_anthropic",
    "response_from_anthropic",
    "response_to_anthropic",
    "tools_from_anthropic",
    "tools_to_anthropic",
]
