"""Reads and writes one subagent file: frontmatter and prompt; repairs invalid YAML."""
