"""The OpenStarry protocol: run an agent on any provider, not only on SDK models (spec protocol)."""

from kantan_agents.models.protocol.http import AnthropicProvider, GeminiProvider
from kantan_agents.models.protocol.model import ProviderModel, is_provider
from kantan_agents.models.protocol.pieces import ArgumentsPiece, ReasoningPiece
from kantan_agents.models.protocol.provider import (
    Message,
    Provider,
    ProviderContext,
    Role,
    StreamingProvider,
    ToolSpec,
)
from kantan_agents.models.protocol.results import to_provider_response
from kantan_agents.models.protocol.schema import protocol_schema
from kantan_agents.models.protocol.types import (
    ContentSegment,
    ContentType,
    ProviderResponse,
    ProviderToolCall,
)
from kantan_agents.models.protocol.unreadable_replies import OnUnreadable, unreadable

__all__ = [
    "AnthropicProvider",
    "ArgumentsPiece",
    "ContentSegment",
    "ContentType",
    "GeminiProvider",
    "Message",
    "OnUnreadable",
    "Provider",
    "ProviderContext",
    "ProviderModel",
    "ProviderResponse",
    "ProviderToolCall",
    "ReasoningPiece",
    "Role",
    "StreamingProvider",
    "ToolSpec",
    "is_provider",
    "protocol_schema",
    "to_provider_response",
    "unreadable",
]
