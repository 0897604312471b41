"""Finds the JSON in a model's reply: strict JSON in three steps first, then nearly valid JSON."""
