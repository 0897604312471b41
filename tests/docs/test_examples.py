"""Every Python example of README and docs runs, against a model server over loopback HTTP.

The blocks of a page are one script. HTML comments, which readers do not see, say what the model answers
(``<!-- replies: [...] -->`` before a block), which text block shows what the page prints
(``<!-- output -->``), and that a page is a test module (``<!-- run: pytest -->``).
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from agents import set_trace_processors

from kantan_agents.testing import OfflineServer
from kantan_agents.tracing.registry import recorders

from .pages import PAGES, Page

WITH_EXAMPLES = [page for page in map(Page, PAGES) if page.blocks("python")]
SCRIPTS = [page for page in WITH_EXAMPLES if not page.is_test_module]
TEST_MODULES = [page for page in WITH_EXAMPLES if page.is_test_module]


@pytest.mark.parametrize("page", SCRIPTS, ids=str)
def test_the_examples_of_a_page_run_and_print_what_it_shows(
    page: Page,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = tmp_path / f"{page.path.stem.lower()}.py"
    script.write_text(page.script, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # whose agents are nobody's business
    with OfflineServer(page.replies) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        runpy.run_path(str(script), run_name=f"page_{script.stem}")
    set_trace_processors([])
    for recorder in recorders():
        recorder.shutdown()
    assert capsys.readouterr().out == page.output
    assert len(server.requests) == len(page.replies), "every reply is asked for, and no more"


@pytest.mark.parametrize("page", TEST_MODULES, ids=str)
def test_the_tests_of_a_page_pass(page: Page, tmp_path: Path) -> None:
    script = tmp_path / f"test_{page.path.stem}.py"
    script.write_text(page.script, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(script)],
        cwd=tmp_path,
        # Whatever is not on loopback ends at a port where nobody listens.
        env=kept | {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    for block in page.blocks("python"):
        assert "def " in block.code, "a block that defines nothing tests nothing"


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=str)
def test_no_example_escapes_the_suite(page: Page) -> None:
    assert page.text.count("```python") == len(page.blocks("python"))
    replies = sum(bool(block.replies) for block in page.blocks("python"))
    assert page.text.count("<!-- replies:") == replies, "replies stand directly before their block"
    outputs = sum(block.is_output for block in page.blocks("text"))
    assert page.text.count("<!-- output") == outputs, "the mark stands directly before its block"
