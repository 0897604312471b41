"""The commands and the program of docs/guides/local-models.md, with the real model."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Page
from tests.real_model.language_model import ModelServer

PAGE = Page(ROOT / "docs" / "guides" / "local-models.md")


@pytest.fixture
def environment(server: ModelServer, tmp_path: Path) -> Mapping[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return {**inherited, **server.environment, "HOME": str(tmp_path)}


def run(arguments: list[str], cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def test_the_program_of_the_page(tmp_path: Path, environment: Mapping[str, str]) -> None:
    script = tmp_path / "page.py"
    script.write_text(PAGE.script, encoding="utf-8")
    finished = run([str(script)], tmp_path, environment)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout


@pytest.mark.parametrize("command", [block.code.strip() for block in PAGE.blocks("bash")])
def test_the_commands_of_the_page(command: str, tmp_path: Path, environment: Mapping[str, str]) -> None:
    program, *arguments = shlex.split(command)
    assert program == "kantan-agents"
    finished = run(["-m", "kantan_agents", *arguments], tmp_path, environment)
    assert finished.returncode in (0, 1), finished.stderr  # this model may call no tool
    assert environment["KANTAN_LLM_BASE_URL"] in finished.stdout


def test_what_the_check_finds(tmp_path: Path, environment: Mapping[str, str]) -> None:
    finished = run(
        ["-m", "kantan_agents", "models", "check", "compat/local", "--json"], tmp_path, environment
    )
    found = json.loads(finished.stdout)
    works = {row["question"]: row["works"] for row in found["questions"]}
    works.pop("tool call")
    assert all(works.values()), found
    assert (found["output_mode"], found["family"]) == ("native", "local")
