"""Postgres instead of a file. The driver is imported only when a URL is used."""
