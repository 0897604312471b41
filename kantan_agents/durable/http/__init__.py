"""Durable runs over HTTP."""
