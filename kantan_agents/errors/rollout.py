"""E110 to E119: rollouts."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class InvalidRolloutError(KantanAgentsError):
    """An argument of ``Rollout`` or ``Arm`` has a mistake.

    Examples: shares that do not sum to 1, a guard that does not exist, two equal arms.

    Attributes:
        option: The argument of ``Rollout``.
        reason: What is wrong with it, and what to do.
    """

    code = "E110"
    template = "Invalid rollout: {option} {reason}"
    option: str
    reason: str


class RolloutConflictError(KantanAgentsError):
    """Another rollout of the agent is running, or this one started with other arms, guards or shares.

    Within one process the error is raised. If another process runs the other one, the error is logged and all
    runs get the control.

    Fix: Promote or stop the other rollout, or give the changed one another ``name``.

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

    Fix: Use one of the names in the message. A rollout starts when an agent with it is created.

    Attributes:
        name: The name.
        path: The database.
        known: The rollouts in it, as a str.
    """

    code = "E112"
    template = "No rollout {name!r} in {path}; it has {known}"
    name: str
    path: str
    known: str


class RolloutStepError(KantanAgentsError):
    """A rollout cannot take this step now: it is over, or the step needs the name of an existing arm.

    Attributes:
        rollout: Its name.
        reason: Why not, and what to do.
    """

    code = "E113"
    template = "The rollout {rollout!r} stays as it is: {reason}"
    rollout: str
    reason: str


class MissingUnitError(KantanAgentsError):
    """The context of a run lacks the ``unit`` of its rollout, which has ``on_missing_unit="raise"``.

    Fix: Put the value of ``unit`` into the context, or omit ``on_missing_unit``.

    Attributes:
        rollout: Name of the rollout.
        unit: The path of the missing value.
        reason: What is there instead, and what to do.
    """

    code = "E114"
    template = "No unit for the rollout {rollout!r}: {unit} {reason}"
    rollout: str
    unit: str
    reason: str
