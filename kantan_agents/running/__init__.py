"""One run: made from what a caller gives, driven through its pipeline, streamed, logged."""
