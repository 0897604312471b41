"""The commands of the group ``kantan-agents runs``."""
