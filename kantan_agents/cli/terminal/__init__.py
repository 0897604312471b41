"""Shared by all commands: console, tables, safe text, input, quantities and exit codes."""
