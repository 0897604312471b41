"""A program that only runs agents imports neither the search nor the optimiser."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys

def show():
    print([name for name in ("kantan_agents.lab.improve", "gepa") if name in sys.modules])

import kantan_agents, kantan_agents.lab.evaluation
show()
import kantan_agents.cli.app
show()
import kantan_agents.lab.improve
show()
"""


def test_the_optimiser_is_imported_only_when_a_search_begins() -> None:
    finished = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert finished.stdout.splitlines() == ["[]", "[]", "['kantan_agents.lab.improve']"]
