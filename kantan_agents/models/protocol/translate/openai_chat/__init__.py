"""Translate between the protocol and OpenAI's chat completions."""

from kantan_agents.models.protocol.translate.openai_chat.messages import (
    messages_from_openai_chat,
    messages_to_openai_chat,
)
from kantan_agents.models.protocol.translate.openai_chat.responses import (
    response_from_openai_chat,
    response_to_openai_chat,
)
from kantan_agents.models.protocol.translate.openai_chat.tools import (
    tools_from_openai_chat,
    tools_to_openai_chat,
)

__all__ = [
    "messages_from_openai_chat",
    "messages_to_openai_chat",
    "response_from_openai_chat",
    "response_to_openai_chat",
    "tools_from_openai_chat",
    "tools_to_openai_chat",
]
