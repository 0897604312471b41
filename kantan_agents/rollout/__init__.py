"""Guarded rollouts of a new version."""
