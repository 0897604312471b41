"""Shared by all commands: the console, tables, safe text, inputs, quantities and exit codes."""
