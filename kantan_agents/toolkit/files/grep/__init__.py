"""``Grep``: searches files in linear time."""
