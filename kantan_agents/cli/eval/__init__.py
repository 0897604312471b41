"""``kantan-agents eval``: evaluates agents on datasets, compares the results, and lets people label them."""
