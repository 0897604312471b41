"""Errors of rollouts."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class InvalidRolloutError(KantanAgentsError):
    """The definition of a rollout has a mistake.

    Attributes:
        option: The argument of ``Rollout``.
        reason: What is wrong with it, and what to do.
    """

    code = "E110"
    template = "Invalid rollout: {option} {reason}"
    option: str
    reason: str


class RolloutConflictError(KantanAgentsError):
    """A rollout cannot run beside another one, or is not the one that was started under its name.

    Attributes:
        rollout: Its name.
        reason: What it conflicts with, and what to do.
    """

    code = "E111"
    template = "The rollout {rollout!r} cannot run: {reason}"
    rollout: str
    reason: str


class RolloutNotFoundError(KantanAgentsError):
    """The database has no rollout of this name, and no agent of this name has one.

    Attributes:
        name: The name.
        path: The database.
        known: The rollouts in it, as a text.
    """

    code = "E112"
    template = "No rollout {name!r} in {path}; it has {known}"
    name: str
    path: str
    known: str


class RolloutStepError(KantanAgentsError):
    """A rollout cannot take this step now.

    Attributes:
        rollout: Its name.
        reason: Why not, and what to do.
    """

    code = "E113"
    template = "The rollout {rollout!r} stays as it is: {reason}"
    rollout: str
    reason: str


class MissingUnitError(KantanAgentsError):
    """The context of a run does not say which unit the run belongs to, and the rollout requires it.

    Attributes:
        rollout: Name of the rollout.
        unit: Where the unit was looked for.
        reason: What is there instead, and what to do.
    """

    code = "E114"
    template = "No unit for the rollout {rollout!r}: {unit} {reason}"
    rollout: str
    unit: str
    reason: str
