"""Shared by three or more packages: checked arguments, secrets in text, private files, waiting, loggers."""
