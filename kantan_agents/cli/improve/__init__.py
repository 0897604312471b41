"""The command `kantan-agents improve`."""
