"""The vocabulary of a run."""
