"""Postgres in place of the file: its URL, a connection that takes the same SQL, its tables, its search.

Nothing here imports the driver before a URL is used.
"""
