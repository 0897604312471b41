"""The vocabulary of a run: events, pipeline, user code around calls, context, prompts and templates."""
