"""The same work on several agent frameworks, each in an environment and in processes of its own."""
