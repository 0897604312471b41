"""``kantan-agents run``: one question, one answer."""
