"""E167 to E172: the shell and web tools."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class ShellUnavailableError(KantanAgentsError):
    """``Bash`` cannot start a command: no bash or ``/bin/sh``, no ``sys.executable``, or an unsafe folder.

    The folder is unsafe if it was replaced by a link, or if a running command could replace it.

    Fix: Use the tools on a POSIX system.

    Attributes:
        reason: Why.
    """

    code = "E167"
    template = "No command can be run: {reason}"
    reason: str


class SandboxUnavailableError(KantanAgentsError):
    """With ``sandbox="required"``, bubblewrap is missing or does not work here. No model is called.

    Fix: Install bubblewrap. In a container, allow user namespaces.

    Attributes:
        reason: What was tried, and how it failed.
    """

    code = "E168"
    is_bad_input = True
    template = "The shell needs a sandbox, and there is none: {reason}"
    reason: str


class UnknownShellError(KantanAgentsError):
    """``BashOutput``, ``KillShell`` or ``/jobs`` named a shell that this run or conversation has not started.

    Fix: Use one of ``error.available``. Shells are closed with their run or conversation.

    Attributes:
        shell: The id in the call.
        available: The existing ids; empty outside of a run, where they may belong to others.
    """

    code = "E169"
    template = "No background shell {shell} (available: {listed})"
    shell: str
    available: list[str]

    def __init__(self, *, shell: str, available: list[str], listed: str | None = None) -> None:
        super().__init__(shell=shell, available=available, listed=listed or ", ".join(available) or "none")


class TooManyShellsError(KantanAgentsError):
    """A run or conversation has as many background commands as ``ShellLimits`` allows.

    Attributes:
        limit: How many it may have.
        running: Their ids; empty outside of a run, where they may belong to others.
    """

    code = "E170"
    template = "{limit} background shells are running, and no more may: end one of {listed} with KillShell"
    limit: int
    running: list[str]

    def __init__(self, *, limit: int, running: list[str], listed: str | None = None) -> None:
        super().__init__(limit=limit, running=running, listed=listed or ", ".join(running) or "them")


class URLRejectedError(KantanAgentsError):
    """``WebFetch`` got a URL that is not a web page, has a password, is ambiguous, or is not public.

    Fix: For services of an internal network, pass ``private_addresses=True``.

    Attributes:
        url: The URL.
        reason: Why.
    """

    code = "E171"
    template = "{url} is not fetched: {reason}"
    url: str
    reason: str


class FetchError(KantanAgentsError):
    """The host is not found, the server does not answer in time, or its answer cannot be read.

    Attributes:
        url: Its URL.
        reason: Why.
    """

    code = "E172"
    template = "{url} could not be fetched: {reason}"
    url: str
    reason: str
