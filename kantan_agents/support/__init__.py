"""Helpers for every package: argument checks, plain data, HTTP connections, waiting for tasks, loggers."""
