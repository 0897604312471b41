"""The library's tables of durable runs."""
