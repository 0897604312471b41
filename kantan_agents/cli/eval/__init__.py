"""``kantan-agents eval``: evaluates agents on datasets, compares results, and collects human labels."""
