"""``Request``: a model call's arguments."""

from __future__ import annotations

from typing import Any

import attrs

from kantan_agents.models.ask_model import PARAMETERS, ask_model, stream_model

_PARAMETERS, FURTHER = PARAMETERS[:4], PARAMETERS[4:]
"""Positional arguments of ``stream_response`` after ``_PARAMETERS``."""


@attrs.define(eq=False)
class Request:
    """One request to a model; ``options`` has the other arguments."""

    instructions: str | None
    input: Any
    settings: Any
    tools: list[Any]
    options: dict[str, Any]

    @classmethod
    def of(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Request:
        """Return the request of an SDK call."""
        given = dict(kwargs)
        if args:
            given.update(zip((*_PARAMETERS, *FURTHER), args, strict=False))
        taken = given.pop
        return cls(
            taken("system_instructions"), taken("input"), taken("model_settings"), [*taken("tools")], given
        )

    @classmethod
    def as_given(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Request:
        """Like ``of``, without copies, for readers."""
        if args:
            return cls.of(args, kwargs)
        return cls(
            kwargs["system_instructions"], kwargs["input"], kwargs["model_settings"], kwargs["tools"], kwargs
        )

    @property
    def schema(self) -> Any:
        """The output schema; None for plain text."""
        return self.options.get("output_schema")

    @property
    def handoffs(self) -> list[Any]:
        """The handoffs the model may choose."""
        return self.options.get("handoffs") or []

    @property
    def is_kept(self) -> bool:
        """Whether the provider stores the conversation."""
        options = self.options
        return options.get("previous_response_id") is not None or options.get("conversation_id") is not None

    def answer(self, model: Any) -> Any:
        """Return the awaitable of the model's answer."""
        given = zip(_PARAMETERS, (self.instructions, self.input, self.settings, self.tools), strict=True)
        return ask_model(model, (), {**dict(given), **self.options})

    def stream(self, model: Any) -> Any:
        """Return the model's stream."""
        options = dict(self.options)
        further = [options.pop(name) for name in FURTHER]
        given = (self.instructions, self.input, self.settings, self.tools, *further)
        return stream_model(model, given, options)

    def with_options(self, **changes: Any) -> Request:
        """Return the request with changed options."""
        return attrs.evolve(self, options={**self.options, **changes})
