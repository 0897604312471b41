"""Tools among thousands: what finds those that fit an input, and what a run has of them in view."""

from kantan_agents.retrieval.bm25 import BM25Retriever
from kantan_agents.retrieval.combined import CombinedRetriever
from kantan_agents.retrieval.embeddings import EmbeddingRetriever
from kantan_agents.retrieval.options import ToolRetrieval
from kantan_agents.retrieval.retriever import Retriever, ToolDocument, ToolIndex, ToolMatch
from kantan_agents.retrieval.selection import ToolSelection

__all__ = [
    "BM25Retriever",
    "CombinedRetriever",
    "EmbeddingRetriever",
    "Retriever",
    "ToolDocument",
    "ToolIndex",
    "ToolMatch",
    "ToolRetrieval",
    "ToolSelection",
]
