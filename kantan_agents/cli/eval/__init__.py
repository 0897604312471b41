"""``kantan-agents eval``: evaluates agents, and collects human labels."""
