"""Runs agents on the cases of a dataset, and stores the results in the trace database."""
