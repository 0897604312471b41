"""``ShellLimits``: what a command may use."""

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
    """What a command of ``shell_tools`` may use. A command that uses more is ended with all its processes.

    Attributes:
        seconds: How long a command may take if the model asks for nothing else.
        most_seconds: The longest time that the model may ask for.
        background_seconds: How long a command in the background may take.
        paused_seconds: How long they go on while the run waits for an approval.
        background_shells: How many commands a run may have in the background at once.
        cpu_seconds: CPU time of all processes of a command together.
        memory_bytes: Memory of all processes of a command together, with shared memory and files that lie in
            memory only, without files on a disk. It is sampled ten times a second. It is also the
            ``RLIMIT_DATA`` of each process, which shared memory does not count for, and the size of
            ``/dev/shm`` in a sandbox.
        disk_bytes: How much a command may write to disks in all, and the size of the sandbox's ``/tmp``, both
            sampled; also the largest file that a command may write (``RLIMIT_FSIZE``).
        processes: How many processes a command may have at once.
        output_bytes: How much of the output the model gets, one half from the beginning and one from the end.
            No more than twice as much is kept in memory.
        printed_bytes: How much a command may print in all.
        grace_seconds: How long the processes have to end after SIGTERM before they are killed.

    Raises:
        InvalidOptionError: E75, one of them is not a number of its kind.
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
