"""The model that examples, help texts and the documentation name."""

EXAMPLE_MODEL = "gpt-6.1-terra"
"""Providers shut models down: change the name here, then run ``python docs/name_example_model.py``."""
