"""Postgres instead of a file: its URL, a connection that takes the same SQL, its tables, its search.

The driver is imported only when a URL is used.
"""
