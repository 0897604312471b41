"""The environment of a command: a few variables without secrets, and the caller's."""

from __future__ import annotations

import os
from collections.abc import Mapping

from kantan_agents.errors import InvalidOptionError

# Programs need these. Secrets and the addresses of agents (SSH_AUTH_SOCK, DBUS_SESSION_BUS_ADDRESS) are in
# other variables.
ALLOWED = ("PATH", "HOME", "LANG", "LANGUAGE", "LOGNAME", "TERM", "TMPDIR", "TZ", "USER")
_ALLOWED_PREFIX = "LC_"
# These make a program load code from files.
_OF_LOADERS = ("LD_", "DYLD_", "GCONV_PATH", "LOCPATH", "GLIBC_TUNABLES")
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


def checked_environment(given: object) -> dict[str, str]:
    """Return the caller's variables; raise E75."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidOptionError(
            option="env", reason=f"must be a mapping of names to str, not {type(given).__name__}"
        )
    for name, value in given.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            raise InvalidOptionError(option="env", reason=f"{name!r} is not the name of a variable")
        if not isinstance(value, str) or "\0" in value:
            raise InvalidOptionError(option="env", reason=f"the value of {name} must be a str without NUL")
    return dict(given)


def clean_environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the allowed variables of this process, then ``given``."""
    own = {
        name: value
        for name, value in os.environ.items()
        if name in ALLOWED or name.startswith(_ALLOWED_PREFIX)
    }
    return {"PATH": _DEFAULT_PATH, **own, **given}


def without_loaders(environment: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split variables into those allowed outside the sandbox, and the others."""
    others = {name: value for name, value in environment.items() if name.startswith(_OF_LOADERS)}
    return {name: value for name, value in environment.items() if name not in others}, others
