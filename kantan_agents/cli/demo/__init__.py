"""``kantan-agents demo``: the main workflow from end to end."""
