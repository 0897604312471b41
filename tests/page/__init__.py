"""Makes this directory a package for pytest, so that ``browser`` is closed after its last test."""
