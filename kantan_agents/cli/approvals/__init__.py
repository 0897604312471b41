"""The commands of the group ``kantan-agents approvals``."""
