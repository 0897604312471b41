"""The keys that sign paused runs."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kantan_agents.core.templating import KEY_VARIABLE
from kantan_agents.errors import ApprovalStateError, InvalidOptionError
from kantan_agents.support.private_files import open_private
from kantan_agents.traces import registry

Key = bytes | str
"""A secret of at least ``MIN_BYTES`` bytes; a str counts in UTF-8."""

Keys = Key | Sequence[Key]
"""The first signs, and each verifies."""

MIN_BYTES: Final = 16
_FILE_BYTES: Final = 32
# Never follow a link or wait for a pipe; some flags do not exist on Windows.
_SAFELY: Final = sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_BINARY", "O_NOINHERIT")
)
_HOW_TO_GIVE: Final = (
    f"pass key=..., set the environment variable {KEY_VARIABLE}, or call record_traces, which has a key in a "
    "file beside its database"
)


def given_keys(key: Keys | None) -> tuple[bytes, ...]:
    """Return the argument's keys, or else the environment's."""
    if key is None:
        text = os.environ.get(KEY_VARIABLE)
        return () if text is None else (_checked(KEY_VARIABLE, text),)
    if isinstance(key, (list, tuple)):
        if not key:
            raise InvalidOptionError(option="key", reason="must have at least one key")
        return tuple(_checked("key", one) for one in key)
    return (_checked("key", key),)


def recorded_keys(*, create: bool) -> tuple[bytes, ...]:
    """Return the key in the file next to the recorder's database."""
    database = registry.main_database()
    if database is None:
        raise ApprovalStateError(reason=f"there is no key to sign runs with: {_HOW_TO_GIVE}")
    path = database.with_name(f"{database.name}.key")
    try:
        key = _read(path)
        if key is None and create:
            _make(path)
            key = _read(path)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    if key is None:
        raise _unusable(path, "it does not exist")
    return (key,)


def _checked(option: str, key: Any) -> bytes:
    if not isinstance(key, (bytes, str)):
        raise InvalidOptionError(option=option, reason=f"must be bytes or a str, not {type(key).__name__}")
    # An encoding error would contain the key.
    secret = key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key
    if len(secret) < MIN_BYTES:
        raise InvalidOptionError(option=option, reason=f"must have at least {MIN_BYTES} bytes")
    return secret


def _read(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | _SAFELY)
    except FileNotFoundError:
        return None
    try:
        problem = _problem(os.fstat(descriptor))
        key = os.read(descriptor, _FILE_BYTES + 1) if problem is None else b""
    finally:
        os.close(descriptor)
    if problem is None and len(key) != _FILE_BYTES:
        problem = f"it must have {_FILE_BYTES} bytes"
    if problem is not None:
        raise _unusable(path, problem)
    return key


def _problem(status: os.stat_result) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if not hasattr(os, "geteuid"):  # Windows has neither owners nor such modes
        return None
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return "other users may read or write it; allow only its owner (chmod 600)"
    return None


def _make(path: Path) -> None:
    """Atomic, and never replaces a file."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = open_private(temporary)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_FILE_BYTES))
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):  # another process was faster
            os.link(temporary, path)
    finally:
        temporary.unlink()


def _unusable(path: Path, problem: str) -> ApprovalStateError:
    return ApprovalStateError(reason=f"the key file {path} cannot be used: {problem}. Or {_HOW_TO_GIVE}")
