"""Files that configurations in a project name."""
