"""``kantan-agents skills``: lists and checks skills and commands in Markdown files."""
