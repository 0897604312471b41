"""``kantan-agents agents``: lists, checks, fixes and creates subagent files."""
