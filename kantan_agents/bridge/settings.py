"""Model settings that the SDK need not take apart twice a run."""

from __future__ import annotations

from agents import ModelSettings


class QuickSettings(ModelSettings):
    """``ModelSettings`` whose identity costs nothing.

    The SDK computes each agent's identity twice a run and copies all thirty fields of its settings to
    do so: a sixth of a one-turn run. Callables it identifies by their name alone, so these settings are
    callable. They equal the plain ones in both directions, and everything else is inherited.
    """

    @classmethod
    def adopt(cls, settings: ModelSettings) -> ModelSettings:
        """Return settings equal to ``settings``; a user's own subclass is returned as it is."""
        if type(settings) is not ModelSettings:
            return settings
        adopted = cls.__new__(cls)
        adopted.__dict__.update(vars(settings))
        return adopted

    def __call__(self) -> ModelSettings:
        """Return them as plain ``ModelSettings``."""
        plain = ModelSettings.__new__(ModelSettings)
        plain.__dict__.update(vars(self))
        return plain

    def __eq__(self, other: object) -> bool:
        # The dataclass compares equal only to its own class; the SDK compares settings to find out
        # whether they are the defaults.
        return isinstance(other, ModelSettings) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # mutable, like ModelSettings itself
