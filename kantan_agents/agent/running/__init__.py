"""One run: created from the caller's arguments, driven through its pipeline, streamed and logged."""
