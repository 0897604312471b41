"""Skills, commands in Markdown files, and project instructions."""
