"""Runs agents on the cases of a dataset, and keeps the results in the trace database."""
