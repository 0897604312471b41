"""Every Python example of README and docs runs against a model server over loopback HTTP.

The blocks of a page are one script. HTML comments, which readers do not see, give the replies of the model
(``<!-- replies: [...] -->`` before a block), mark a text block as the printed output (``<!-- output -->``),
and make the page a test module (``<!-- run: pytest -->``).
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
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # without the user's own subagent files
    with OfflineServer(page.replies) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        runpy.run_path(str(script), run_name=f"page_{script.stem}")
    set_trace_processors([])
    for recorder in recorders():
        recorder.shutdown()
    assert capsys.readouterr().out == page.output
    assert len(server.requests) == len(page.replies), "every reply must be used, and no more requested"


@pytest.mark.parametrize("page", TEST_MODULES, ids=str)
def test_the_tests_of_a_page_pass(page: Page, tmp_path: Path) -> None:
    script = tmp_path / f"test_{page.path.stem}.py"
    script.write_text(page.script, encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(script)],
        cwd=tmp_path,
        # Requests to other hosts fail: the proxy's port is closed.
        env=inherited | {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    for block in page.blocks("python"):
        assert "def " in block.code, "a block without a definition tests nothing"


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=str)
def test_every_example_is_run(page: Page) -> None:
    assert page.text.count("```python") == len(page.blocks("python"))
    replies = sum(bool(block.replies) for block in page.blocks("python"))
    assert page.text.count("<!-- replies:") == replies, "replies must come directly before their block"
    outputs = sum(block.is_output for block in page.blocks("text"))
    assert page.text.count("<!-- output") == outputs, "the mark must come directly before its block"
