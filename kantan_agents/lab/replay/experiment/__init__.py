"""Replays recorded runs with a change: models are real, tool results come from the recording."""
