"""Structured output: schemas, the forms in which models are asked, and what they answer."""

from kantan_agents.structured.asking.agent_output import AgentOutput, agent_output
from kantan_agents.structured.asking.fetch import OutputAttempt
from kantan_agents.structured.asking.forms import OutputMode, checked_delivery
from kantan_agents.structured.output_types import OutputType
from kantan_agents.structured.parsing.parse import parse_structured_output
from kantan_agents.structured.schemas.results import as_dict
from kantan_agents.structured.schemas.schema import OutputSchema, output_schema

__all__ = [
    "AgentOutput",
    "OutputAttempt",
    "OutputMode",
    "OutputSchema",
    "OutputType",
    "agent_output",
    "as_dict",
    "checked_delivery",
    "output_schema",
    "parse_structured_output",
]
