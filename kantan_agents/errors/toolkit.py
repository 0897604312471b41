"""E167 to E172: the shell and web tools."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class ShellUnavailableError(KantanAgentsError):
    """Commands cannot be run here, or one of them could not be started.

    Attributes:
        reason: Why.
    """

    code = "E167"
    template = "No command can be run: {reason}"
    reason: str


class SandboxUnavailableError(KantanAgentsError):
    """``sandbox="required"``, and there is no sandbox that works.

    Attributes:
        reason: What was tried, and how it failed.
    """

    code = "E168"
    is_bad_input = True
    template = "The shell needs a sandbox, and there is none: {reason}"
    reason: str


class UnknownShellError(KantanAgentsError):
    """A call names a background shell that its run or conversation has not.

    Attributes:
        shell: The id in the call.
        available: The ids that there are; empty outside of a run, where they may be those of others.
    """

    code = "E169"
    template = "No background shell {shell} (available: {listed})"
    shell: str
    available: list[str]

    def __init__(self, *, shell: str, available: list[str], listed: str | None = None) -> None:
        super().__init__(shell=shell, available=available, listed=listed or ", ".join(available) or "none")


class TooManyShellsError(KantanAgentsError):
    """A run or conversation has as many background shells as it may have.

    Attributes:
        limit: How many it may have.
        running: Their ids; empty outside of a run, where they may be those of others.
    """

    code = "E170"
    template = "{limit} background shells are running, and no more may: end one of {listed} with KillShell"
    limit: int
    running: list[str]

    def __init__(self, *, limit: int, running: list[str], listed: str | None = None) -> None:
        super().__init__(limit=limit, running=running, listed=listed or ", ".join(running) or "them")


class URLRefusedError(KantanAgentsError):
    """A URL that is not fetched, whatever the rules say.

    Attributes:
        url: The URL.
        reason: Why.
    """

    code = "E171"
    template = "{url} is not fetched: {reason}"
    url: str
    reason: str


class FetchError(KantanAgentsError):
    """A page could not be fetched.

    Attributes:
        url: Its URL.
        reason: Why.
    """

    code = "E172"
    template = "{url} could not be fetched: {reason}"
    url: str
    reason: str
