"""``/undo``: restores files that tools have changed."""
