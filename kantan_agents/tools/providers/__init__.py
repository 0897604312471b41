"""Tools and rules that installed distributions bring, declared as entry points."""
