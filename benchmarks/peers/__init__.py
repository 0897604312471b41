"""Compares agent frameworks on the same work, each in its own environment and processes."""
