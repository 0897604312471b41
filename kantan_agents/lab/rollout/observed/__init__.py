"""The runs of a rollout in the trace database."""
