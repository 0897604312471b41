"""Structured output: JSON schemas of types, requests for an output, and parsing of the replies."""

from kantan_agents.models.structured.output_types import OutputType
from kantan_agents.models.structured.parsing.parse import parse_structured_output
from kantan_agents.models.structured.requests.agent_output import AgentOutput, agent_output
from kantan_agents.models.structured.requests.fetch import OutputAttempt
from kantan_agents.models.structured.requests.forms import OutputMode, checked_delivery
from kantan_agents.models.structured.schemas.results import as_dict, json_data
from kantan_agents.models.structured.schemas.schema import OutputSchema, output_schema

__all__ = [
    "AgentOutput",
    "OutputAttempt",
    "OutputMode",
    "OutputSchema",
    "OutputType",
    "agent_output",
    "as_dict",
    "checked_delivery",
    "json_data",
    "output_schema",
    "parse_structured_output",
]
