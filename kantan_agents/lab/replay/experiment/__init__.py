"""Runs recorded runs again with something changed: real models, tools from the recording."""
