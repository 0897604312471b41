"""What the trace database says about the runs of a rollout."""
