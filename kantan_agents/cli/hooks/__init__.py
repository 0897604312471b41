"""The user's commands around tool calls, before a prompt is sent, and after an answer."""
