"""Reads, repairs and writes one subagent file."""
