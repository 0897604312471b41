"""The examples of the documentation that need packages beside the development environment, each a program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kantan_agents.testing import OfflineServer
from tests.docs.pages import PAGES, ROOT, Example, Page

EXAMPLES = [example for page in map(Page, PAGES) for example in page.examples_beside]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_that_needs_other_packages_runs_and_prints_what_the_page_shows(
    example: Example, tmp_path: Path
) -> None:
    script = tmp_path / "example.py"
    script.write_text(example.block.code, encoding="utf-8")
    with OfflineServer(example.block.replies) as server:
        variables = {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **server.environment()}
        finished = subprocess.run(
            [sys.executable, str(script)],
            cwd=tmp_path,
            env={**os.environ, **variables},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    assert (finished.returncode, finished.stdout) == (0, example.output), finished.stderr
    assert len(server.requests) == len(example.block.replies)
