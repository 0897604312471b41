"""Translate between the protocol and Google's Gemini API (``generateContent``)."""

from kantan_agents.models.protocol.translate.gemini.messages import messages_from_gemini, messages_to_gemini
from kantan_agents.models.protocol.translate.gemini.responses import response_from_gemini, response_to_gemini
from kantan_agents.models.protocol.translate.gemini.schema import schema_from_gemini, schema_to_gemini
from kantan_agents.models.protocol.translate.gemini.tools import tools_from_gemini, tools_to_gemini

__all__ = [
    "messages_from_gemini",
    "messages_to_gemini",
    "response_from_gemini",
    "response_to_gemini",
    "schema_from_gemini",
    "schema_to_gemini",
    "tools_from_gemini",
    "tools_to_gemini",
]
