"""``kantan-agents replay``: runs recorded runs again."""
