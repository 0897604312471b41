"""Traces: the data of a run, its recorder and its store.

This module imports nothing, so that reading a database does not import the SDK.
"""
