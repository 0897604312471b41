"""``Grep``: searches the contents of files in linear time."""
