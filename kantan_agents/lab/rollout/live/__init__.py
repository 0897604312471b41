"""A rollout in a running process: its state, kept up to date, and the check of its guards."""
