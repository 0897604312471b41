"""Translate between the protocol and OpenAI's Responses API, whose items the SDK uses as well."""

from kantan_agents.models.protocol.translate.openai_responses.messages import (
    messages_from_openai_responses,
    messages_to_openai_responses,
)
from kantan_agents.models.protocol.translate.openai_responses.responses import (
    response_from_openai_responses,
    response_to_openai_responses,
)
from kantan_agents.models.protocol.translate.openai_responses.tools import (
    tools_from_openai_responses,
    tools_to_openai_responses,
)

__all__ = [
    "messages_from_openai_responses",
    "messages_to_openai_responses",
    "response_from_openai_responses",
    "response_to_openai_responses",
    "tools_from_openai_responses",
    "tools_to_openai_responses",
]
