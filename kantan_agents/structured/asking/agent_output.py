"""The output schema of one agent: a schema, and how the agent wants it delivered."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from agents import AgentOutputSchemaBase
from typing_extensions import Self

from kantan_agents.errors import InvalidOptionError
from kantan_agents.structured.asking.failure import given_up
from kantan_agents.structured.asking.forms import Delivery
from kantan_agents.structured.schemas.json_schema import validator_of
from kantan_agents.structured.schemas.schema import OutputSchema, output_schema


class AgentOutput(OutputSchema):
    """What an agent's model must answer with, and how it is asked for it.

    Attributes:
        delivery: How.
    """

    delivery: Delivery

    @classmethod
    def delivered(cls, schema: OutputSchema, delivery: Delivery) -> Self:
        """Return the schema for an agent."""
        made = cls.adopt(schema)
        made.delivery = delivery
        return made

    @cached_property
    def key(self) -> str:
        """The schema as JSON text; what has worked is remembered by it."""
        return json.dumps(self.plain, ensure_ascii=False)

    @cached_property
    def _on_wire(self) -> Any:
        return validator_of(self.json_schema())

    def is_broken_by(self, value: Any) -> bool:
        """Whether a provider that enforces the schema cannot have written this value.

        Only the strict form is enforced, and not all that a type demands can be sent along in it.
        """
        if not self.is_strict_json_schema():
            return False
        try:
            return not self._on_wire.is_valid(value)
        except ValueError:  # a value that JSON cannot express
            return True

    def validate_json(self, json_str: str) -> Any:
        """Return the value in the output type.

        Raises:
            StructuredOutputError: E40, the text is what an attempt has ended with that was given up.
            ModelBehaviorError: It does not fit; from text that did not come through the agent's model.
        """
        error = given_up(self, json_str)
        if error is not None:
            raise error
        return super().validate_json(json_str)


def agent_output(output_type: Any, delivery: Delivery) -> AgentOutputSchemaBase | None:
    """Return what goes into the SDK agent's ``output_type``.

    Raises:
        OutputSchemaError: E41, the type cannot be expressed as a JSON schema.
        InvalidOptionError: E75, a schema object of the user's own has only the provider's mode.
    """
    schema = output_schema(output_type)
    if isinstance(schema, OutputSchema):
        return AgentOutput.delivered(schema, delivery)
    if schema is not None and delivery.mode in ("tool", "prompt"):
        reason = f"must be 'auto' or 'native' with a {type(schema).__name__}, whose values only it can check"
        raise InvalidOptionError(option="output_mode", reason=reason)
    return schema
