"""Which files ``.gitignore`` files leave out."""

from __future__ import annotations

import os
from contextlib import suppress

import attrs
from pathspec import GitIgnoreSpec

from kantan_agents.toolkit.files.opening import check_regular, open_found

FILE = ".gitignore"
_MOST_BYTES = 1 << 18
_MOST_LINES = 5_000

# Linear time, whatever a file of the repository says.
_ENGINE = "re2"


@attrs.frozen(eq=False)
class IgnoreRules:
    """The patterns of the ``.gitignore`` files on the way to a folder.

    Attributes:
        specs: Each file's patterns, with the length of the path that they do not see.
    """

    specs: tuple[tuple[int, GitIgnoreSpec], ...] = ()

    def within(self, folder: int, path: str) -> IgnoreRules:
        """Return the rules inside a folder.

        Args:
            folder: Its descriptor.
            path: Its path relative to the root.
        """
        spec = _read(folder)
        if spec is None:
            return self
        return IgnoreRules(((len(path) + 1 if path else 0, spec), *self.specs))

    def ignores(self, path: str, *, is_folder: bool = False) -> bool:
        """Return whether a path relative to the root is left out; the innermost file that says so decides."""
        if not self.specs:
            return False
        text = path if path.isascii() else path.encode("utf-8", "replace").decode()
        for skipped, spec in self.specs:
            include = spec.check_file(f"{text[skipped:]}/" if is_folder else text[skipped:]).include
            if include is not None:
                return include
        return False


def _read(folder: int) -> GitIgnoreSpec | None:
    try:
        file = open_found(folder, FILE)
    except OSError:
        return None
    try:
        check_regular((FILE,), os.fstat(file))
        data = os.read(file, _MOST_BYTES)
    except (OSError, ValueError):
        return None
    finally:
        os.close(file)
    return _parsed(data.decode("utf-8-sig", "replace").splitlines()[:_MOST_LINES])


def _parsed(lines: list[str]) -> GitIgnoreSpec | None:
    wanted = [line for line in lines if line.strip() and not line.startswith("#")]
    if not wanted:
        return None
    try:
        return GitIgnoreSpec.from_lines(wanted, backend=_ENGINE)
    except Exception:  # noqa: BLE001 - of several libraries; git ignores a line that it cannot read
        usable = [line for line in wanted if _is_usable(line)]
    with suppress(Exception):
        return GitIgnoreSpec.from_lines(usable, backend=_ENGINE)
    return None


def _is_usable(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line], backend=_ENGINE)
    except Exception:  # noqa: BLE001 - as above
        return False
    return True
