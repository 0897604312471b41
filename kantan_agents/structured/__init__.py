"""Structured output."""

from kantan_agents.structured.schema import OutputSchema, as_dict, output_schema

__all__ = ["OutputSchema", "as_dict", "output_schema"]
