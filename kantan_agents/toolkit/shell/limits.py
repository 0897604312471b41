"""``ShellLimits``: the limits of a command."""

from __future__ import annotations

from typing import Any

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import checked_int, checked_number

_MIB = 1024 * 1024


def _seconds(_instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    checked_number(attribute.name, value, above_zero=True)


def _count(_instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    checked_int(attribute.name, value, 1)


def _none_or_more(_instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    checked_int(attribute.name, value, 0)


def _bytes(_instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    checked_int(attribute.name, value, 1024)


@attrs.frozen
class ShellLimits:
    """The limits of a command of ``shell_tools``. Exceeding one ends the command with all its processes.

    Attributes:
        seconds: Default time limit of a command.
        most_seconds: The longest time limit that the model may set.
        background_seconds: Time limit of a background command.
        paused_seconds: How long background commands continue while the run waits for an approval.
        background_shells: Simultaneous background commands of a run.
        cpu_seconds: CPU time of all processes of a command together.
        memory_bytes: Memory of all processes of a command together, including shared memory and files in
            memory, but not files on a disk. It is sampled ten times a second. It is also the ``RLIMIT_DATA``
            of each process, which does not count shared memory, and the size of ``/dev/shm`` in a sandbox.
        disk_bytes: Bytes that a command may write to disks in total, and the size of the sandbox's ``/tmp``,
            both sampled; also the largest file (``RLIMIT_FSIZE``).
        processes: Simultaneous processes of a command.
        output_bytes: Bytes of output that the model gets, half from the start and half from the end. At most
            twice as much is stored in memory.
        printed_bytes: Bytes that a command may print in total.
        grace_seconds: Time between SIGTERM and SIGKILL.

    Raises:
        InvalidOptionError: E75: a value is not a number of the right kind.
    """

    seconds: float = attrs.field(default=120.0, validator=_seconds)
    most_seconds: float = attrs.field(default=600.0, validator=_seconds)
    background_seconds: float = attrs.field(default=3600.0, validator=_seconds)
    paused_seconds: float = attrs.field(default=900.0, validator=_seconds)
    background_shells: int = attrs.field(default=8, validator=_none_or_more)
    cpu_seconds: int = attrs.field(default=1200, validator=_count)
    memory_bytes: int = attrs.field(default=4096 * _MIB, validator=_bytes)
    disk_bytes: int = attrs.field(default=16 * 1024 * _MIB, validator=_bytes)
    processes: int = attrs.field(default=512, validator=_count)
    output_bytes: int = attrs.field(default=30_000, validator=_bytes)
    printed_bytes: int = attrs.field(default=128 * _MIB, validator=_bytes)
    grace_seconds: float = attrs.field(default=2.0, validator=_seconds)

    def __attrs_post_init__(self) -> None:
        if self.seconds > self.most_seconds:
            reason = f"must be at most most_seconds ({self.most_seconds:g}), not {self.seconds:g}"
            raise InvalidOptionError(option="seconds", reason=reason)
