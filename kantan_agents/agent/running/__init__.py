"""One run: created, driven through its pipeline, streamed and logged."""
