"""Shared by three or more packages."""
