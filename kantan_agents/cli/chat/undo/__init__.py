"""``/undo``: old contents of files that tools have changed, and how they are put back."""
