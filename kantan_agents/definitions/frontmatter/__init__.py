"""Reads and writes one subagent file: frontmatter and prompt, with repair of invalid YAML."""
