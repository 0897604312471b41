"""``AgentOutput``: an agent's output schema."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

import attrs
from agents import AgentOutputSchemaBase
from typing_extensions import Self

from kantan_agents.errors import InvalidOptionError
from kantan_agents.models.structured.requests.failure import failure_for
from kantan_agents.models.structured.requests.forms import Delivery
from kantan_agents.models.structured.schemas.example import example_of
from kantan_agents.models.structured.schemas.json_schema import validator_of
from kantan_agents.models.structured.schemas.schema import OutputSchema, output_schema
from kantan_agents.models.structured.schemas.schema_nodes import Nodes, properties_of


class AgentOutput(OutputSchema):
    """The output schema of an agent, with its ``delivery`` options."""

    delivery: Delivery

    @classmethod
    def delivered(cls, schema: OutputSchema, delivery: Delivery) -> Self:
        """Return a schema with an agent's options."""
        made = cls.adopt(schema)
        made.delivery = delivery
        return made

    @cached_property
    def key(self) -> str:
        """The memory key of working forms."""
        return self.delivery.memory_key or json.dumps(self.plain, ensure_ascii=False)

    @cached_property
    def example(self) -> str:
        """An example value as JSON."""
        return json.dumps(example_of(self.plain), ensure_ascii=False)

    @cached_property
    def _on_wire(self) -> Any:
        return validator_of(self.json_schema())

    def is_violated_by(self, value: Any) -> bool:
        """Return whether a value proves that the schema is not enforced.

        The strict form cannot express every constraint.
        """
        if not self.is_strict_json_schema():
            return False
        try:
            return not self._on_wire.is_valid(value)
        except ValueError:  # not JSON, such as NaN
            return True

    def is_foreign(self, value: Any) -> bool:
        """Return whether an object lacks all properties."""
        known = properties_of(Nodes(self.plain).applying(self.plain) or {})
        return isinstance(value, dict) and bool(known) and known.keys().isdisjoint(value)

    def validate_json(self, json_str: str) -> Any:
        """Return the value; E40 after all attempts, ModelBehaviorError for others' text."""
        error = failure_for(self, json_str)
        if error is not None:
            raise error
        return super().validate_json(json_str)


def agent_output(output_type: Any, delivery: Delivery) -> AgentOutputSchemaBase | None:
    """Return the value for the SDK agent's ``output_type``.

    E41 if impossible; E75 for a custom schema object without native mode.
    """
    schema = output_schema(output_type)
    if isinstance(schema, AgentOutput):
        delivery = attrs.evolve(schema.delivery, mode=delivery.mode, repairs=delivery.repairs)
    if isinstance(schema, OutputSchema):
        return AgentOutput.delivered(schema, delivery)
    if schema is not None and delivery.mode in ("tool", "prompt"):
        reason = f"must be 'auto' or 'native' with a {type(schema).__name__}, whose values only it can check"
        raise InvalidOptionError(option="output_mode", reason=reason)
    return schema
