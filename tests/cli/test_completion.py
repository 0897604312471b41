"""``kantan-agents completion``: the scripts, used by a real bash and as the other shells call them."""

from __future__ import annotations

import json
import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import typer

from kantan_agents.cli.app import app
from tests.programs import Preloaded

COMMANDS = {
    *("agents", "approvals", "chat", "completion", "demo", "eval", "improve", "mcp", "models"),
    *("replay", "rollout", "run", "runs", "skills", "tools", "traces", "worker"),
}

_COMPLETE = """\
eval "$(kantan-agents completion bash)"
function_name=$(complete -p kantan-agents | sed 's/.*-F \\([^ ]*\\).*/\\1/')
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
"$function_name" kantan-agents
printf '%s\\n' "${COMPREPLY[@]}"
"""


HOSTILE = r"x \$(touch owned1) `touch owned2` $(touch owned3) '; touch owned4; ' \" ; touch owned5"


@pytest.fixture
def agents(project: Path) -> Path:
    """A folder with agents, one with a description that a shell could take for code."""
    folder = project / ".claude" / "agents"
    folder.mkdir(parents=True)
    described = {"code-reviewer": "Reviews: code", "evil": HOSTILE, "$(touch owned6)": "x", "--db": "x"}
    for number, (name, description) in enumerate(described.items()):
        text = f"---\nname: {json.dumps(name)}\ndescription: {json.dumps(description)}\n---\nReview.\n"
        (folder / f"{number}.md").write_text(text)
    return project


@pytest.fixture
def path(tmp_path: Path, preloaded: Preloaded) -> str:
    """A search path on which the program is ``kantan-agents``; each call is a process of its own."""
    script = tmp_path / "program.py"
    script.write_text("from kantan_agents.cli.app import main\n\nmain()\n")
    program = tmp_path / "kantan-agents"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(preloaded.command(script))} "$@"\n')
    program.chmod(0o755)
    return f"{tmp_path}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture
def bash(path: str) -> Any:
    """``bash("traces", "s")``: what a real bash completes after ``kantan-agents``."""
    shell = found_shell("bash")

    def completed(*words: str) -> set[str]:
        finished = subprocess.run(
            [shell, "--norc", "-c", _COMPLETE, "bash", "kantan-agents", *words],
            env={**os.environ, "PATH": path},
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        assert finished.stderr == ""
        return set(finished.stdout.split())

    return completed


def found_shell(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} here")
    return found


def test_bash_completes_commands_and_options(bash: Any) -> None:
    assert bash("") == COMMANDS
    assert bash("tr") == {"traces"}
    assert bash("traces", "s") == {"save", "search", "show"}
    assert bash("traces", "list", "--fail") == {"--failed-spans"}
    assert bash("run", "--no-r") == {"--no-record"}


@pytest.mark.parametrize(
    "command", [("chat",), ("run",), ("tools", "explain"), ("eval", "run"), ("traces", "list")]
)
def test_bash_completes_the_names_of_agents(bash: Any, agents: Path, command: tuple[str, ...]) -> None:
    assert bash(*command, "--agent", "") == {"code-reviewer", "evil"}
    assert bash(*command, "--agent", "code") == {"code-reviewer"}
    assert not list(agents.glob("owned*"))


def test_fish_completes_commands_options_and_agents(path: str, agents: Path) -> None:
    def completed(line: str) -> list[str]:
        script = f"kantan-agents completion fish | source; complete -C {shlex.quote(line)}"
        command = [found_shell("fish"), "--no-config", "-c", script]
        environment = {**os.environ, "PATH": path}
        ended = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=True)
        assert ended.stderr == ""
        return [entry.partition("\t")[0] for entry in ended.stdout.splitlines()]

    assert completed("kantan-agents tr") == ["traces"]
    assert completed("kantan-agents run --no-r") == ["--no-record"]
    assert completed("kantan-agents chat --agent ") == ["code-reviewer", "evil"]
    assert not list(agents.glob("owned*"))


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("kantan-agents tr\t", "kantan-agents traces"),
        ("kantan-agents run --no-r\t", "kantan-agents run --no-record"),
        ("kantan-agents chat --agent \t\t", "touch owned3 touch owned4"),
    ],
)
def test_zsh_completes_and_runs_nothing_that_a_file_says(
    path: str, agents: Path, typed: str, expected: str
) -> None:
    master, slave = pty.openpty()
    environment = {**os.environ, "PATH": path, "TERM": "dumb", "PS1": "ready>", "COLUMNS": "200"}
    shell = subprocess.Popen(
        [found_shell("zsh"), "-f", "-i"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        start_new_session=True,
    )
    os.close(slave)
    try:
        read_until(master, b"ready>")
        os.write(master, b"autoload -U compinit; compinit -u -D; unsetopt zle 2>/dev/null; setopt zle\n")
        read_until(master, b"ready>")
        os.write(master, b'eval "$(kantan-agents completion zsh)"; echo is-"set"\n')
        read_until(master, b"is-set")
        os.write(master, typed.encode())
        read_until(master, expected.encode())
    finally:
        shell.kill()
        shell.wait()
        os.close(master)
    assert not list(agents.glob("owned*"))


def read_until(master: int, expected: bytes) -> None:
    read, end = b"", time.monotonic() + 120
    while expected not in read:
        ready = select.select([master], [], [], max(end - time.monotonic(), 0))[0]
        assert ready, f"never shown: {expected!r}\n{read!r}"
        read += os.read(master, 65536)


def commands_in(command: Any, names: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], set[str]]]:
    """Every command with its long options."""
    found = [(names, {opt for each in command.params for opt in each.opts if opt.startswith("--")})]
    for name, inner in getattr(command, "commands", {}).items():
        found += commands_in(inner, (*names, name))
    return found


def test_every_option_of_every_command_is_completed(
    kantan_agents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_KANTAN_AGENTS_COMPLETE", "complete_bash")
    for names, options in commands_in(typer.main.get_command(app)):
        monkeypatch.setenv("COMP_WORDS", " ".join(["kantan-agents", *names, "--"]))
        monkeypatch.setenv("COMP_CWORD", str(len(names) + 1))
        assert set(kantan_agents().stdout.split()) >= options, names


def test_conversations_are_completed(process: Any, tmp_path: Path) -> None:
    from kantan_agents.cli.chat.conversations import Conversations
    from kantan_agents.cli.chat.kept_conversation import ChatTurn, KeptConversation

    file = tmp_path / "kept.sqlite3"
    words = {"COMP_WORDS": "kantan-agents chat --resume a", "COMP_CWORD": "3"}
    environment = {
        "KANTAN_AGENTS_CONVERSATIONS": str(file),
        "_KANTAN_AGENTS_COMPLETE": "complete_bash",
        **words,
    }
    assert process(env=environment).stdout.strip() == ""
    assert not file.exists()
    store = Conversations(file)
    store.add(KeptConversation("abcd", "x"), ChatTurn(1, "turn", HOSTILE))
    store.close()
    assert process(env=environment).stdout == "abcd\n"


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


def test_completing_does_not_import_the_sdk(agents: Path) -> None:
    program = """
import os, sys
from kantan_agents.cli.app import invoke
for typed in sys.argv[1:]:
    os.environ.update(COMP_WORDS=f"kantan-agents {typed}", COMP_CWORD=str(len(typed.split())))
    invoke([])
    if "agents" in sys.modules:
        sys.exit(f"{typed} imports the SDK")
"""
    finished = subprocess.run(
        [sys.executable, "-c", program, "tr", "chat --agent co"],
        env={**os.environ, "_KANTAN_AGENTS_COMPLETE": "complete_bash"},
        capture_output=True,
        check=False,
    )
    assert (finished.returncode, finished.stderr) == (0, b"")
    assert finished.stdout == b"traces\ncode-reviewer\n"
