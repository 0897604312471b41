"""``kantan-agents tools``: explains tool rules, checks them, and lists installed tool providers."""
