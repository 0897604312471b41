"""``Redact``: remove personal data and secrets from model input, answers and traces."""
