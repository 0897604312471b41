"""``kantan-agents tools``: tool rules and installed tool providers."""
