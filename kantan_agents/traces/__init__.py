"""Traces: the data of a run, its recorder and its store.

The tables are kantan-llm's. This module imports nothing, so that reading a database does not import the SDK.
"""
