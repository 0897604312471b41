"""Measurements; each prints ratios within one run, never a figure to be compared across machines."""
