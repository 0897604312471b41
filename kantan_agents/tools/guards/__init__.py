"""Guards: every kind of tool checks the rules at the moment it is called."""
