"""The common parts of experiments."""
