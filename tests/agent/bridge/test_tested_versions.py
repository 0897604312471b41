"""An agent logs one line on versions that the suite does not run on."""

from __future__ import annotations

import logging
import subprocess
import sys
from importlib import metadata

import pytest

from kantan_agents import Agent
from kantan_agents.agent.bridge import tested_versions
from kantan_agents.agent.bridge.tested_versions import PACKAGES, TESTED, is_tested, log_untested_versions


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Versions that appear to be installed, in place of the real ones."""
    versions: dict[str, str] = {}
    monkeypatch.setattr(tested_versions, "version", lambda name: versions.get(name) or metadata.version(name))
    log_untested_versions.cache_clear()
    return versions


def records(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.getMessage() == "untested_versions"]


def test_the_suite_runs_on_a_tested_combination(caplog: pytest.LogCaptureFixture, installed: object) -> None:
    # If this fails on a new version of the SDK: the suite runs on it, so add it to TESTED and to the page.
    Agent("a", "x", model="gpt-6.1-terra")
    assert records(caplog) == []


@pytest.mark.parametrize("later", ["0.24.3", "0.24"])
def test_a_later_fix_of_a_tested_version_is_tested(later: str) -> None:
    assert is_tested((later, "3.60.1", "0.1.9"))


@pytest.mark.parametrize(
    "versions", [("0.22.3", "3.57.0", "0.1.9"), ("0.24.0", "2.54.0", "0.1.9"), ("0.240", "3.0", "0.1.9")]
)
def test_an_untested_combination_is_logged_once(
    versions: tuple[str, ...], caplog: pytest.LogCaptureFixture, installed: dict[str, str]
) -> None:
    installed.update(zip(PACKAGES, versions, strict=True))
    for name in "ab":
        Agent(name, "x", model="gpt-6.1-terra")
    (record,) = records(caplog)
    assert (record.levelname, record.name) == ("WARNING", "kantan_agents")
    found = (record.openai_agents, record.openai, record.kantan_llm)
    assert found == versions
    assert len(record.tested) == len(TESTED)


def test_a_package_without_metadata_is_no_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(tested_versions, "version", missing)
    log_untested_versions.cache_clear()
    Agent("a", "x", model="gpt-6.1-terra")
    assert [record.openai for record in records(caplog)] == ["unknown"]


def test_importing_the_package_looks_up_no_version() -> None:
    program = "import sys, kantan_agents; print(*{'importlib.metadata', 'agents'} & set(sys.modules))"
    command = [sys.executable, "-I", "-c", program]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "\n"
