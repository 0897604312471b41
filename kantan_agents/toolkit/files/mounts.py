"""Whether two open files are on the same mount."""

from __future__ import annotations

from pathlib import Path


def is_same_mount(one: int, other: int) -> bool:
    """Return whether two descriptors are of the same mount; False where the system does not tell.

    In some containers, a file and its folder are on the same mount and still have different device numbers.
    """
    first = _mount_of(one)
    return first is not None and first == _mount_of(other)


def _mount_of(descriptor: int) -> str | None:
    try:
        lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    return next((line for line in lines if line.startswith("mnt_id:")), None)
