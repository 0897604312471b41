"""Benchmarks. Their results are ratios within one run; absolute figures do not compare across machines."""
