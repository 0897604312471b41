"""``kantan-agents chat``: a conversation with an agent in the terminal."""
