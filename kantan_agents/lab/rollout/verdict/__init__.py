"""The meaning of a rollout's metrics."""
