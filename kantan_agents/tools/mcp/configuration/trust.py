"""The trusted configuration files: one file each, with the content's hash."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import attrs

from kantan_agents.errors import MCPTrustRecordError
from kantan_agents.support.replace_file import replace_file
from kantan_agents.tools.mcp.configuration.config_directory import VARIABLE, config_directory
from kantan_agents.tools.mcp.configuration.entry import ServerSource

_FOLDER = "trusted-mcp"
_OWNER_ONLY = 0o700
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_BYTES = 65_536


@attrs.frozen
class TrustRecord:
    """``folder`` is in the user's configuration directory; None without one."""

    folder: Path | None

    @classmethod
    def of_user(cls, environ: Mapping[str, str] | None = None) -> TrustRecord:
        """For this process's user."""
        own = config_directory(environ)
        return cls(None if own is None else own / _FOLDER)

    def distrust(self, source: ServerSource) -> str | None:
        """Return why a file is not trusted; the user's own always are."""
        if source.is_own:
            return None
        known = self._known(source.path)
        if known is None:
            return "is not trusted yet"
        return None if known == source.digest else "has changed since you trusted it"

    def trust(self, source: ServerSource) -> None:
        """Trust this content; E185 if that fails."""
        if self.folder is None:
            reason = f"there is no home directory; set {VARIABLE}"
            raise MCPTrustRecordError(path=_FOLDER, reason=reason)
        record = {"path": str(source.path), "sha256": source.digest}
        try:
            self.folder.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
            # A new file each time, so that an older one's mode does not persist.
            self._file(source.path).unlink(missing_ok=True)
            replace_file(self._file(source.path), json.dumps(record).encode())
        except OSError as error:
            reason = error.strerror or str(error)
            raise MCPTrustRecordError(path=str(self.folder), reason=reason) from error
        if self.distrust(source) is not None:
            reason = "others may write to it; allow only yourself to (chmod 700)"
            raise MCPTrustRecordError(path=str(self.folder), reason=reason)

    def forget(self, path: Path) -> bool:
        """Remove the trust in a file; return whether it existed; E185 if that fails."""
        if self.folder is None:
            return False
        try:
            self._file(path).unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            reason = error.strerror or str(error)
            raise MCPTrustRecordError(path=str(self.folder), reason=reason) from error
        return True

    def _file(self, path: Path) -> Path:
        assert self.folder is not None  # the callers have checked it
        name = hashlib.sha256(os.fsencode(path)).hexdigest()
        return self.folder / f"{name}.json"

    def _known(self, path: Path) -> str | None:
        """Return None if the record is damaged, or not the user's."""
        if self.folder is None:
            return None
        with suppress(OSError, ValueError):
            file = self._file(path)
            if _may_others_write(self.folder) or _may_others_write(file):
                return None
            with file.open("rb") as opened:
                record = json.loads(opened.read(_MOST_BYTES))
            if isinstance(record, dict) and record.get("path") == str(path):
                digest = record.get("sha256")
                return digest if isinstance(digest, str) else None
        return None


def _may_others_write(path: Path) -> bool:
    if os.name == "nt":  # the mode means nothing there
        return False
    status = path.stat()
    return bool(status.st_mode & _OTHERS_MAY_WRITE) or status.st_uid not in (os.geteuid(), 0)
