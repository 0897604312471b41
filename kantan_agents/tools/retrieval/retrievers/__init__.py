"""Retrievers: BM25, embeddings, combinations, and the protocol for custom ones."""
