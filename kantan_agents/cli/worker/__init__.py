"""The command ``kantan-agents worker``."""
