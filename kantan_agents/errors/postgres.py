"""E140 to E149: traces in Postgres."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class NotInPostgresError(KantanAgentsError):
    """Something that a file can do is not possible in Postgres.

    Attributes:
        what: The requested feature.
        reason: The reason, and what to do instead.
    """

    code = "E141"
    is_bad_input = True
    template = "{what} is not possible in Postgres: {reason}"
    what: str
    reason: str


class TraceCopyError(KantanAgentsError):
    """``traces copy`` got one database twice, or a trace cannot be stored.

    Fix: The same command resumes where it stopped.

    Attributes:
        source: Where they are.
        target: Where they should go.
        reason: The reason.
    """

    code = "E142"
    is_bad_input = True
    template = "Traces cannot be copied from {source} to {target}: {reason}"
    source: str
    target: str
    reason: str
