"""Traces: ids, metadata and spans of a run; their recorder and their store.

The tables are kantan-llm's. This module imports nothing, so that reading a database does not import the SDK.
"""
