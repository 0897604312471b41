"""What is done with recorded runs: evaluation, replay, rollout, improvement, judges, other rules."""
