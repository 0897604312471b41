"""Engines of durable runs."""
