"""Datasets of other tools."""
