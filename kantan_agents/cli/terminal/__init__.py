"""Shared by all commands: console, tables, input, quantities and exit codes."""
