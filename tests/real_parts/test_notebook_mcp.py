"""A Jupyter notebook whose MCP server is connected on the event loop of the notebook."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import pytest

# Installed by `nox -s real_parts` only.
nbformat: Any = importlib.import_module("nbformat")
NotebookClient: Any = importlib.import_module("nbclient").NotebookClient
CRASHING = Path(__file__).parents[1] / "tools" / "mcp" / "crashing_server.py"

CONNECT = f"""
import sys
from agents.mcp import MCPServerStdio
from kantan_agents import Agent, set_trace_processors
from kantan_agents.testing import ScriptedModel, assistant_message, function_call

set_trace_processors([])

def agent(server):
    model = ScriptedModel(
        [[function_call("read", {{"path": "a"}}, call_id="c")], [assistant_message("done")]]
    )
    return Agent("clerk", "x", model=model, mcp_servers=[server], tool_providers=None)

def new_server():
    return MCPServerStdio(
        {{"command": sys.executable, "args": [{str(CRASHING)!r}, "."]}},
        name="files",
        client_session_timeout_seconds=60,
    )

server = new_server()
"""


def outputs(folder: Path, *cells: str) -> list[str]:
    """Run the cells of a notebook in a real kernel, and return what each prints."""
    # Under pytest, a kernel replaces stderr by an object that no process can inherit.
    os.environ.pop("PYTEST_CURRENT_TEST", None)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(folder)}}).execute()
    return ["".join(one.get("text", "") for one in cell.outputs) for cell in notebook.cells]


@pytest.fixture(scope="module", autouse=True)
def _loops_of_jupyter(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Run a first notebook: Jupyter keeps the event loops that it creates for all later ones."""
    outputs(tmp_path_factory.mktemp("notebook"))


def test_a_sync_run_in_a_notebook_says_at_once_what_to_do_and_run_async_works(tmp_path: Path) -> None:
    *_, failed, worked, _ = outputs(
        tmp_path,
        CONNECT,
        "await server.connect()",
        "import time\nbegan = time.monotonic()\n"
        "try:\n    agent(server).run('Go')\nexcept ValueError as error:\n    print(error)\n"
        "print('at once' if time.monotonic() - began < 1 else 'late')",
        "print((await agent(server).run_async('Go'))['result'].final_output)",
        "await server.cleanup()",
    )
    assert failed.startswith("[kantan-agents][E37] MCP server files of agent clerk")
    assert "call run_async" in failed
    assert failed.endswith("at once\n")
    assert worked == "done\n"


def test_a_server_that_the_notebook_has_not_connected_works_in_both_kinds_of_runs(tmp_path: Path) -> None:
    _, first, second = outputs(
        tmp_path,
        CONNECT,
        "print(agent(server).run('Go')['result'].final_output)",
        "print((await agent(server).run_async('Go'))['result'].final_output)",
    )
    assert (first, second) == ("done\n", "done\n")
    starts = [line for line in (tmp_path / "log").read_text().splitlines() if line.startswith("started")]
    assert len(starts) == 1
