"""What the figures of a rollout mean."""
