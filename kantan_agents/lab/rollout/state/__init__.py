"""The state of rollouts in the trace database."""
