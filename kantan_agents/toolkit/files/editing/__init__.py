"""The tools that change files."""
