"""Schemas of output types: JSON Schema, the provider's strict mode, validation, and conversion back."""
