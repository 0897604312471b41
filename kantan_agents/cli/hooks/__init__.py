"""Hooks: commands of the user that run around tool calls, before a prompt is sent and after an answer."""
