"""``Hedge``: a second request when the first one is slow."""
