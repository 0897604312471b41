"""``Cache``: stored answers for equal requests."""
