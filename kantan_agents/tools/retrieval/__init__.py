"""Tool retrieval: finds the tools that match an input, and tracks which tools a run shows its model."""

from kantan_agents.tools.retrieval.options import ToolRetrieval
from kantan_agents.tools.retrieval.retrievers.bm25 import BM25Retriever
from kantan_agents.tools.retrieval.retrievers.combined import CombinedRetriever
from kantan_agents.tools.retrieval.retrievers.embeddings import EmbeddingRetriever
from kantan_agents.tools.retrieval.retrievers.retriever import Retriever, ToolDocument, ToolIndex, ToolMatch
from kantan_agents.tools.retrieval.selection import ToolSelection

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
