"""Shared by three or more packages: checked arguments, secret detection, private files, waiting, loggers."""
