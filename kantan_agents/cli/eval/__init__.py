"""``kantan-agents eval``: evaluates agents, compares results, and collects human labels."""
