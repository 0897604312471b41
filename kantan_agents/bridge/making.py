"""Makes SDK agents in a fraction of the time their constructor takes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, TypeVar

import agents
from agents import AgentOutputSchemaBase, Model, ModelSettings
from agents.models import get_default_model_settings

AgentT = TypeVar("AgentT", bound=agents.Agent[Any])

_KNOWN = frozenset({"name", "model", "mcp_servers", "output_type"})


def made_quickly(kind: type[AgentT], options: Mapping[str, Any]) -> AgentT | None:
    """Return what ``kind(**options)`` would; None if only the constructor can say.

    The constructor reads all type hints of the class and copies default settings twice, each time. A copy
    of an agent that it has made once differs in nothing, where there is nothing else to be checked.
    """
    name, model, output_type = (options.get(option) for option in ("name", "model", "output_type"))
    is_plain = (
        options.keys() <= _KNOWN
        and isinstance(name, str)
        and (model is None or isinstance(model, (str, Model)))
        and (output_type is None or isinstance(output_type, AgentOutputSchemaBase))
        and isinstance(options.get("mcp_servers", []), list)
    )
    if not is_plain:
        return None
    fields, own = _blank(kind)  # type: ignore[arg-type]  # classes are hashable
    made = kind.__new__(kind)
    vars(made).update(fields, **{field: value.copy() for field, value in own.items()})
    for option, value in options.items():
        setattr(made, option, value)
    made.model_settings = _settings_for(model)
    return made


@functools.cache
def _blank(kind: type[agents.Agent[Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of an agent that has none but a name, and those of them that are each agent's own."""
    fields = vars(kind(name=""))
    return fields, {field: value for field, value in fields.items() if isinstance(value, (list, dict))}


def _settings_for(model: str | Model | None) -> ModelSettings:
    """Return the settings an agent of the SDK has by default."""
    if isinstance(model, Model):
        settings = ModelSettings.__new__(ModelSettings)
        vars(settings).update(_plain_settings())
        return settings
    return get_default_model_settings(model)


@functools.cache
def _plain_settings() -> dict[str, Any]:
    return vars(ModelSettings())
