"""A rollout in a running process: its current state, and the check of its guards."""
