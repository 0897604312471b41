"""Ready-made providers for the native APIs of Anthropic and Google."""

from kantan_agents.models.protocol.http.anthropic_provider import AnthropicProvider
from kantan_agents.models.protocol.http.gemini_provider import GeminiProvider

__all__ = ["AnthropicProvider", "GeminiProvider"]
