"""Traces: ids, metadata and spans of a run, the recorder that writes them, and the store that reads them.

The tables of the trace database are kantan-llm's. This package imports nothing itself, so that reading a
database (``store``) does not import the SDK.
"""
