"""``kantan-agents skills``: lists and checks skills and commands."""
