"""Tools for files below a root folder that they cannot leave."""

from kantan_agents.toolkit.files.all_tools import file_tools

__all__ = ["file_tools"]
