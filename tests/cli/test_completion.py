"""``kantan-agents completion``: the scripts, used by a real bash and as the other shells call them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import PROGRAM

COMMANDS = {
    *("demo", "run", "completion", "agents", "approvals", "eval", "improve", "mcp", "replay", "rollout"),
    *("runs", "skills", "tools", "traces", "worker"),
}

_COMPLETE = """\
eval "$(kantan-agents completion bash)"
function_name=$(complete -p kantan-agents | sed 's/.*-F \\([^ ]*\\).*/\\1/')
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
"$function_name" kantan-agents
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def bash(tmp_path: Path) -> Any:
    """``bash("traces", "s")``: what a real bash completes after ``kantan-agents``."""
    shell = shutil.which("bash")
    if shell is None:
        pytest.skip("no bash here")
    program = tmp_path / "kantan-agents"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAM)} "$@"\n')
    program.chmod(0o755)

    def completed(*words: str) -> set[str]:
        finished = subprocess.run(
            [shell, "--norc", "-c", _COMPLETE, "bash", "kantan-agents", *words],
            env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        assert finished.stderr == ""
        return set(finished.stdout.split())

    return completed


def test_bash_completes_commands_and_options(bash: Any) -> None:
    assert bash("") == COMMANDS
    assert bash("tr") == {"traces"}
    assert bash("traces", "s") == {"save", "search", "show"}
    assert bash("traces", "list", "--fail") == {"--failed-spans"}
    assert bash("run", "--no-r") == {"--no-record"}


@pytest.mark.parametrize("shell", ["zsh", "fish", "powershell"])
def test_the_script_of_another_shell_calls_this_program(kantan_agents: Any, shell: str) -> None:
    outcome = kantan_agents("completion", shell)
    assert (outcome.code, outcome.stderr) == (0, "")
    assert "kantan-agents" in outcome.stdout
    assert f"complete_{shell}" in outcome.stdout


@pytest.mark.parametrize(
    ("shell", "variables"),
    [
        ("zsh", {"_TYPER_COMPLETE_ARGS": "kantan-agents tr"}),
        (
            "fish",
            {"_TYPER_COMPLETE_ARGS": "kantan-agents tr", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
        ),
    ],
)
def test_the_program_answers_the_call_of_another_shell(
    process: Any, shell: str, variables: dict[str, str]
) -> None:
    outcome = process(env={"_KANTAN_AGENTS_COMPLETE": f"complete_{shell}", **variables})
    assert (outcome.code, outcome.stderr) == (0, "")
    assert "traces" in outcome.stdout
    assert "demo" not in outcome.stdout


def test_an_unknown_shell_is_a_mistake(kantan_agents: Any) -> None:
    outcome = kantan_agents("completion", "tcsh")
    assert (outcome.code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("error: [kantan-agents][usage] ")


def test_completing_does_not_import_the_sdk() -> None:
    program = (
        "import sys; from kantan_agents.cli.app import invoke; invoke([]); sys.exit('agents' in sys.modules)"
    )
    words = {"_KANTAN_AGENTS_COMPLETE": "complete_bash", "COMP_WORDS": "kantan-agents tr", "COMP_CWORD": "1"}
    finished = subprocess.run(
        [*PROGRAM[:1], "-c", program], env={**os.environ, **words}, capture_output=True, check=False
    )
    assert (finished.returncode, finished.stdout) == (0, b"traces\n")
