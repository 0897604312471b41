"""docs/start/workbench.md, followed from an empty folder: its files, its commands, and what they print."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.testing import OfflineServer, RecordedRequest, ScriptedToolCall
from tests.mcp_servers import RealServers
from tests.programs import Preloaded

from .pages import ROOT

PAGE = ROOT / "docs" / "start" / "workbench.md"
_FILE = re.compile(r"^`([^`\n]+)`:\n\n```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(
    r"^```bash\n(.*?)^```$(?:\n\n<!-- printed -->\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE
)

Steps = list[Any]


def task(agent: str, prompt: str) -> ScriptedToolCall:
    return ScriptedToolCall("Task", {"description": "review", "prompt": prompt, "subagent_type": agent})


# What the model of each agent does, step by step. The page says that it is scripted.
MODEL: dict[str, Steps] = {
    "You lead": [
        ScriptedToolCall("directory_tree", {"path": "shop"}),
        [task("code-reviewer", "Review shop/cart.py."), task("test-runner", "Run the tests.")],
        task("writer", "Prices are rounded before they are added: shop/cart.py, line 2. One test fails."),
        "One mistake: shop/cart.py rounds each price before it adds them. The report is reviews/cart.md.",
    ],
    "You review code": [
        ScriptedToolCall("Skill", {"name": "review-checklist"}),
        ScriptedToolCall("Grep", {"pattern": "round", "output_mode": "content"}),
        ScriptedToolCall("Read", {"file_path": "shop/cart.py"}),
        "Line 2 of shop/cart.py rounds each price before it adds them.",
    ],
    "You run the tests": [
        ScriptedToolCall("Bash", {"command": "curl http://127.0.0.1/"}),
        ScriptedToolCall("Bash", {"command": "python -m unittest shop.test_cart"}),
        "One of one test fails: test_total.",
    ],
    "You write the report": [
        ScriptedToolCall("Write", {"file_path": "notes.md", "content": "x"}),
        ScriptedToolCall("Write", {"file_path": "reviews/cart.md", "content": "# Cart\n\nLine 2 rounds.\n"}),
        "Written.",
    ],
}


def answer(request: RecordedRequest) -> Any:
    """Return the next step of the agent that asks."""
    steps = next(steps for beginning, steps in MODEL.items() if beginning in request.body["instructions"])
    answered = [item for item in request.body["input"] if item.get("type") == "function_call_output"]
    done, step = len(answered), 0
    while done > 0:
        done -= len(steps[step]) if isinstance(steps[step], list) else 1
        step += 1
    return steps[step]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty folder with the files of the page."""
    folder = tmp_path / "project"
    for name, text in _FILE.findall(PAGE.read_text()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def follow(
    project: Path, server: OfflineServer, filesystem: Any, preloaded: Preloaded
) -> list[tuple[str, str, str]]:
    """Run the commands of the page; return each with what it shows and what it printed."""
    environment = {
        **os.environ,
        **server.environment(),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(project.parent / "home"),
        "KANTAN_AGENTS_CONFIG_DIR": str(project.parent / "config"),
        "KANTAN_AGENTS_DB": str(project.parent / "traces.sqlite3"),
        "COLUMNS": "100",
    }
    configuration = project / ".mcp.json"
    (named,) = json.loads(configuration.read_text())["mcpServers"]
    # The same server, installed for the tests instead of by npx.
    params = {"command": filesystem["command"], "args": [filesystem["args"][0], "."]}
    configuration.write_text(json.dumps({"mcpServers": {named: params}}))
    done = []
    for block, shown in _COMMAND.findall(PAGE.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            if not line.startswith("kantan-agents"):
                continue
            result = preloaded.run(
                ["-m", "kantan_agents", *shlex.split(line)[1:]], cwd=project, env=environment
            )
            assert result.returncode == 0, (line, result.stdout, result.stderr)
            assert "was not approved" not in result.stderr
            done.append((line, shown, result.stdout))
    return done


def test_the_page_can_be_followed_from_an_empty_folder(
    project: Path, real_servers: RealServers, preloaded: Preloaded
) -> None:
    with OfflineServer(answer) as server:
        done = follow(project, server, real_servers.filesystem(project), preloaded)
    assert len(done) >= 6
    for line, shown, printed in done:
        if shown:
            assert [one.rstrip() for one in printed.splitlines()] == shown.splitlines(), line
    assert (project / "reviews" / "cart.md").read_text() == "# Cart\n\nLine 2 rounds.\n"
    assert not (project / "notes.md").exists()
