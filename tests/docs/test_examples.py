"""Every Python example of README and docs runs against a model server over loopback HTTP.

The blocks of a page are one script. HTML comments, which readers do not see, give the replies of the model
(``<!-- replies: [...] -->`` before a block), mark a text block as the printed output (``<!-- output -->``),
and make the page a test module (``<!-- run: pytest -->``). A block that needs packages beside the development
environment (``<!-- needs: NAME -->``) is a script of its own; ``nox -s real_parts`` runs these blocks.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading
from pathlib import Path
from socketserver import BaseServer

import pytest
from hypothesis.configuration import storage_directory

from kantan_agents.testing import OfflineServer
from kantan_agents.traces.registry import recorders
from tests.programs import Preloaded
from tests.traces.telemetry.ending import end_exporters

from .pages import PAGES, ROOT, Page

WITH_EXAMPLES = [page for page in map(Page, PAGES) if page.blocks("python")]
SCRIPTS = [page for page in WITH_EXAMPLES if not page.is_test_module]
TEST_MODULES = [page for page in WITH_EXAMPLES if page.is_test_module]


@pytest.mark.parametrize("page", SCRIPTS, ids=str)
def test_the_examples_of_a_page_run_and_print_what_it_shows(
    page: Page,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = tmp_path / f"page_{page.path.stem.lower()}.py"  # a page may have the name of a package
    script.write_text(page.script, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # without the user's own subagent files
    if "TRACES_URL" in page.script:
        monkeypatch.setenv("TRACES_URL", request.getfixturevalue("postgres_url"))
    if "sys.executable" in page.script:  # to start a script of the page
        preloaded: Preloaded = request.getfixturevalue("preloaded")
        monkeypatch.setattr(sys, "executable", str(preloaded.interpreter(tmp_path / "python")))
    threads = threading.enumerate()
    with OfflineServer(page.replies) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        names = runpy.run_path(str(script), run_name=script.stem)
    end_exporters(threads)
    if isinstance(collector := names.get("server"), BaseServer):  # exporters send to it until their end
        collector.shutdown()
        collector.server_close()
    for recorder in recorders():
        recorder.shutdown()
    assert capsys.readouterr().out == page.output
    assert len(server.requests) == len(page.replies), "every reply must be used, and no more requested"


@pytest.mark.parametrize("page", TEST_MODULES, ids=str)
def test_the_tests_of_a_page_pass(page: Page, tmp_path: Path, preloaded: Preloaded) -> None:
    script = tmp_path / f"test_{page.path.stem}.py"
    script.write_text(page.script, encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    # The library is imported before pytest could rewrite its asserts, which it does for every plugin.
    warnings = ["-W", "error", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    finished = preloaded.run(
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", *warnings, script],
        cwd=tmp_path,
        env=inherited
        | {
            # Requests to other hosts fail: the proxy's port is closed.
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
            # Hypothesis keeps there which characters there are, and takes seconds to find out.
            "HYPOTHESIS_STORAGE_DIRECTORY": str(storage_directory()),
        },
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    for block in page.blocks("python"):
        assert "def " in block.code, "a block without a definition tests nothing"


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=str)
def test_every_example_is_run(page: Page) -> None:
    beside = page.examples_beside
    blocks = [*page.blocks("python"), *(example.block for example in beside)]
    assert page.text.count("```python") == len(blocks)
    replies = sum(bool(block.replies) for block in blocks)
    assert page.text.count("<!-- replies:") == replies, "replies must come directly before their block"
    outputs = sum(block.is_output for block in page.blocks("text")) + sum(bool(e.output) for e in beside)
    assert page.text.count("<!-- output") == outputs, "the mark must come directly before its block"


def test_examples_that_need_other_packages_are_left_to_the_session_that_installs_them() -> None:
    beside = [example for page in map(Page, PAGES) for example in page.examples_beside]
    assert {example.page for example in beside} == {"docs/guides/opentelemetry.md"}
    sessions = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    for package in {name for example in beside for name in example.block.needs}:
        assert f'    "{package}",\n' in sessions, package
    runner = (ROOT / "tests" / "real_parts" / "test_examples_beside.py").read_text(encoding="utf-8")
    assert "examples_beside" in runner
