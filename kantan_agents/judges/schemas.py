"""What a judge answers with; the JSON schemas are the specification's (``judgment``, ``evaluation``)."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt


def _as_specified(schema: dict[str, Any]) -> None:
    # pydantic adds titles, and the docstring as a description; a model would be told both.
    schema.pop("description", None)
    schema.pop("title", None)
    for field in schema["properties"].values():
        field.pop("title", None)


class Judgment(BaseModel):
    """Which rule is met: the answer of the stage ``structured_output``."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_as_specified)

    step: StrictInt = Field(description="Matched rule number (1-based)")
    reason: str = Field(description="Brief justification")


class Evaluation(BaseModel):
    """Which condition is met: the answer of the stage ``ai_judge``."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_as_specified)

    matched_index: StrictInt
    reason: str
