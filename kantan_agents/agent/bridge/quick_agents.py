"""SDK agents and model settings, cheap to create and to identify."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, TypeVar

import agents
from agents import AgentOutputSchemaBase, Model, ModelSettings
from agents.models import get_default_model_settings

AgentT = TypeVar("AgentT", bound=agents.Agent[Any])

_KNOWN = frozenset({"name", "model", "mcp_servers", "output_type"})


def build_quickly(kind: type[AgentT], options: Mapping[str, Any]) -> AgentT | None:
    """Return an agent equal to ``kind(**options)``; None if the options need checks.

    It copies an agent created once: the constructor reads all type hints and copies the default settings
    twice.
    """
    # The constructor makes creating an agent 4.2 times as slow (`python -m benchmarks --only construct_0`).
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
    fields = vars(kind(name=""))
    return fields, {field: value for field, value in fields.items() if isinstance(value, (list, dict))}


def _settings_for(model: str | Model | None) -> ModelSettings:
    if isinstance(model, Model):
        # The constructor would add 13 % to creating an agent (`python -m benchmarks --only construct_0`).
        settings = ModelSettings.__new__(ModelSettings)
        vars(settings).update(_plain_settings())
        return settings
    return get_default_model_settings(model)


@functools.cache
def _plain_settings() -> dict[str, Any]:
    return vars(ModelSettings())


class QuickSettings(ModelSettings):
    """``ModelSettings`` whose identity costs nothing to compute.

    The SDK identifies each agent twice a run by copying all thirty settings, but callables by name alone, so
    these are callable. They equal plain settings in both directions.
    """

    # Plain settings add 11 % to a turn (`python -m benchmarks --only one_turn`), 44 % in row `handoffs_10`.

    @classmethod
    def adopt(cls, settings: ModelSettings) -> ModelSettings:
        """Return equal quick settings; other subclasses unchanged."""
        if type(settings) is not ModelSettings:
            return settings
        # The constructor would add 19 % to creating an agent (`python -m benchmarks --only construct_0`).
        adopted = cls.__new__(cls)
        adopted.__dict__.update(vars(settings))
        return adopted

    def __call__(self) -> ModelSettings:
        """Return plain ``ModelSettings``."""
        return ModelSettings(**vars(self))

    def __eq__(self, other: object) -> bool:
        # A dataclass equals only instances of the same class, but the SDK compares settings with defaults.
        return isinstance(other, ModelSettings) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # mutable, like ModelSettings itself
