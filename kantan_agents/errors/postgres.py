"""E140 to E149: traces in Postgres."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class NotInPostgresError(KantanAgentsError):
    """Something that a file can do is not possible in Postgres.

    Attributes:
        what: What was asked for.
        reason: The reason, and what to do instead.
    """

    code = "E141"
    is_bad_input = True
    template = "{what} is not possible in Postgres: {reason}"
    what: str
    reason: str


class TraceCopyError(KantanAgentsError):
    """Traces cannot be copied from one database to another.

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
