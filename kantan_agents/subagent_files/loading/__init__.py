"""Finds, reads and caches many subagent files."""
