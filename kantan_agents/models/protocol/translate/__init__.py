"""Translate tools, messages and responses between the protocol and the formats of four model APIs.

A value that is translated and translated back is the same value, apart from its spelling: a base64 ``data:``
URL becomes base64 with its type, and several system messages at the start become one. Fields of a format
beyond the protocol are in ``extra`` under the name of the format; other formats omit them, and any other
field of ``extra`` is E52. Input that is not of the format at all is E50.
"""

from kantan_agents.models.protocol.translate.anthropic import (
    messages_from_anthropic,
    messages_to_anthropic,
    output_schema_to_anthropic,
    response_from_anthropic,
    response_to_anthropic,
    tools_from_anthropic,
    tools_to_anthropic,
)
from kantan_agents.models.protocol.translate.gemini import (
    messages_from_gemini,
    messages_to_gemini,
    response_from_gemini,
    response_to_gemini,
    schema_from_gemini,
    schema_to_gemini,
    tools_from_gemini,
    tools_to_gemini,
)
from kantan_agents.models.protocol.translate.openai_chat import (
    messages_from_openai_chat,
    messages_to_openai_chat,
    response_from_openai_chat,
    response_to_openai_chat,
    tools_from_openai_chat,
    tools_to_openai_chat,
)
from kantan_agents.models.protocol.translate.openai_responses import (
    messages_from_openai_responses,
    messages_to_openai_responses,
    response_from_openai_responses,
    response_to_openai_responses,
    tools_from_openai_responses,
    tools_to_openai_responses,
)

__all__ = [
    "messages_from_anthropic",
    "messages_from_gemini",
    "messages_from_openai_chat",
    "messages_from_openai_responses",
    "messages_to_anthropic",
    "messages_to_gemini",
    "messages_to_openai_chat",
    "messages_to_openai_responses",
    "output_schema_to_anthropic",
    "response_from_anthropic",
    "response_from_gemini",
    "response_from_openai_chat",
    "response_from_openai_responses",
    "response_to_anthropic",
    "response_to_gemini",
    "response_to_openai_chat",
    "response_to_openai_responses",
    "schema_from_gemini",
    "schema_to_gemini",
    "tools_from_anthropic",
    "tools_from_gemini",
    "tools_from_openai_chat",
    "tools_from_openai_responses",
    "tools_to_anthropic",
    "tools_to_gemini",
    "tools_to_openai_chat",
    "tools_to_openai_responses",
]
