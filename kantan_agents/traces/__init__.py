"""Traces: ids, metadata and spans of a run; the recorder that writes them; the store that reads them.

The tables of the trace database are kantan-llm's. This module imports nothing, so that reading a database
(``store``) does not import the SDK.
"""
