"""``kantan-agents traces``: lists, searches, shows, exports and prunes recorded runs."""
