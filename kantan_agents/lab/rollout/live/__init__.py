"""A rollout in a running process."""
