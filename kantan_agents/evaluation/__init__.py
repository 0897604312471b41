"""Evaluates agents on datasets, and compares the results."""
