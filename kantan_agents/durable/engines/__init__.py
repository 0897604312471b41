"""Engines of durable runs: the seam, and one module for each."""
