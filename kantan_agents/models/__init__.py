"""Resolve the ``model`` option of an Agent to an SDK model and its HTTP client."""

from kantan_agents.models.client_retries import claim_all_retries, makes_all_retries
from kantan_agents.models.named import DefaultProvider, ProviderFactory, check_configured, use_provider
from kantan_agents.models.origin import Origin, origin_of
from kantan_agents.models.resolve import ResolvedModel, embedding_clients, own_client_of, resolve_model
from kantan_agents.models.sent_once import answer_sent_once, stream_sent_once
from kantan_agents.models.stream_usage import stream_with_usage

__all__ = [
    "DefaultProvider",
    "Origin",
    "ProviderFactory",
    "ResolvedModel",
    "answer_sent_once",
    "check_configured",
    "claim_all_retries",
    "embedding_clients",
    "makes_all_retries",
    "origin_of",
    "own_client_of",
    "resolve_model",
    "stream_sent_once",
    "stream_with_usage",
    "use_provider",
]
