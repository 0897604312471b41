"""A program that only runs agents imports neither the search nor the optimiser."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("program", "found"),
    [
        ("import kantan_agents, kantan_agents.lab.evaluation", "[]"),
        ("import kantan_agents.cli.app", "[]"),
        ("import kantan_agents.lab.improve", "['kantan_agents.lab.improve']"),
    ],
)
def test_the_optimiser_is_imported_only_when_a_search_begins(program: str, found: str) -> None:
    show = "print([name for name in ('kantan_agents.lab.improve', 'gepa') if name in sys.modules])"
    finished = subprocess.run(
        [sys.executable, "-c", f"import sys\n{program}\n{show}"], capture_output=True, text=True, check=True
    )
    assert finished.stdout.strip() == found
