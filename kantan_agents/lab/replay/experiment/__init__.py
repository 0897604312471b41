"""Replays with a change: models are real, tool results are recorded."""
