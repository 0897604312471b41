"""``kantan-agents traces``: recorded runs."""
