"""Requests for structured output: their forms, the attempts, and the validation of replies."""
