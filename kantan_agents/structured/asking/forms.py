"""In which forms a model can be asked for an output of a schema."""

from __future__ import annotations

from typing import Any, Literal, cast, get_args

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import checked_int

Mode = Literal["native", "tool", "prompt"]
OutputMode = Literal["auto", "native", "tool", "prompt"]
"""How an agent's model is asked for its output: ``Agent(output_mode=...)``."""
_MODES = get_args(OutputMode)


@attrs.frozen
class Form:
    """One way of asking: a mode and how far the provider goes along with it.

    Attributes:
        mode: ``"native"``, the provider's own JSON schema; ``"tool"``, a tool whose parameters are the
            schema; ``"prompt"``, the schema at the end of the instructions.
        forces_tool: In tool mode, whether the model is made to call a tool.
        json_object: In prompt mode, whether the provider is told to write a JSON object of any shape.
    """

    mode: Mode
    forces_tool: bool = False
    json_object: bool = False


NATIVE = Form("native")
FORCED_TOOL = Form("tool", forces_tool=True)
TOOL = Form("tool")
JSON_OBJECT = Form("prompt", json_object=True)
PROMPT = Form("prompt")


@attrs.frozen
class Delivery:
    """How an agent wants its output delivered.

    Attributes:
        mode: The mode, or ``"auto"`` for the first that works.
        repairs: How often a reply that does not fit goes back to the model.
    """

    mode: OutputMode = "auto"
    repairs: int = 1


def checked_delivery(mode: Any, repairs: Any) -> Delivery:
    """Return the options of an Agent as a ``Delivery``.

    Raises:
        InvalidOptionError: E75, there is no such mode, or ``repairs`` is no number from 0.
    """
    if mode not in _MODES:
        raise InvalidOptionError(
            option="output_mode", reason=f"must be one of {', '.join(map(repr, _MODES))}, not {mode!r}"
        )
    return Delivery(cast("OutputMode", mode), checked_int("output_repairs", repairs, 0))
