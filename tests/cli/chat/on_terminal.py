"""Becomes ``kantan-agents`` with a terminal of its own, or with a file as its standard input.

The first argument is the path of the terminal, or ``stdin:`` and the path of the file.
"""

from __future__ import annotations

import os
import sys


def take_streams(place: str) -> None:
    """Open the terminal as the standard streams of a new session, whose controlling terminal it becomes."""
    os.setsid()
    if place.startswith("stdin:"):
        descriptors = {0: os.open(place.removeprefix("stdin:"), os.O_RDONLY)}
    else:
        terminal = os.open(place, os.O_RDWR)
        descriptors = dict.fromkeys((0, 1, 2), terminal)
    for number, descriptor in descriptors.items():
        os.dup2(descriptor, number)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
        stream.reconfigure(line_buffering=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def main() -> None:
    take_streams(sys.argv[1])
    from kantan_agents.cli.app import main as run

    sys.argv = ["kantan-agents", *sys.argv[2:]]
    run()


main()
