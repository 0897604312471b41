"""The environment variable with the key that signs paused runs; no template reads it."""

KEY_VARIABLE = "KANTAN_AGENTS_KEY"
