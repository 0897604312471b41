"""Forms of structured output requests."""

from __future__ import annotations

from typing import Any, Literal, cast, get_args

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import checked_int

Mode = Literal["native", "tool", "prompt"]
OutputMode = Literal["auto", "native", "tool", "prompt"]
"""How a structured output is requested from the model: ``Agent(output_mode=...)``."""
_MODES = get_args(OutputMode)


@attrs.frozen
class Form:
    """One form of a request: a mode, and the provider features it uses.

    ``json_object`` is JSON mode, which accepts any object; with ``sends_schema``, some servers turn the
    schema into a grammar. ``is_example``: an example after the user's message replaces the schema.
    """

    mode: Mode
    forces_tool: bool = False
    json_object: bool = False
    sends_schema: bool = False
    is_example: bool = False


NATIVE = Form("native")
FORCED_TOOL = Form("tool", forces_tool=True)
TOOL = Form("tool")
JSON_OBJECT = Form("prompt", json_object=True)
JSON_OBJECT_OF_SCHEMA = Form("prompt", json_object=True, sends_schema=True)
PROMPT = Form("prompt")
EXAMPLE = Form("prompt", is_example=True)
TOOL_FORMS = (FORCED_TOOL, TOOL)
TEXT_FORMS = (PROMPT, EXAMPLE)
"""The forms that add only text to a request."""


@attrs.frozen
class Delivery:
    """The output options of an agent.

    ``is_single``: another mode serves only the next answer. ``memory_key`` is the schema by default.
    """

    mode: OutputMode = "auto"
    repairs: int = 1
    is_single: bool = False
    memory_key: str | None = None


def checked_delivery(mode: Any, repairs: Any) -> Delivery:
    """Return an Agent's options as a ``Delivery``; E75 if they are invalid."""
    if mode not in _MODES:
        raise InvalidOptionError(
            option="output_mode", reason=f"must be one of {', '.join(map(repr, _MODES))}, not {mode!r}"
        )
    return Delivery(cast("OutputMode", mode), checked_int("output_repairs", repairs, 0))
