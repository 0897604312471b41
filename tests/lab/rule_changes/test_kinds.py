"""Tools of every kind: their calls are decided by what the rules saw of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import ApplyPatchTool

from kantan_agents import Agent
from kantan_agents.testing import ScriptedModel, assistant_message
from tests.core.interception.test_tool_calls import KINDS, other_kind
from tests.lab.rule_changes.recorded import Recording, decision
from tests.tools.conftest import Executed
from tests.tools.test_guard import Editor, patch_call
from tests.tools.test_names_of_servers import real_server

OF_KIND = {
    "local_shell": ("local_shell(git push)", {"command": {"pattern": "push$"}}),
    "shell": ("shell(git:*)", {"commands[]": {"pattern": "^git"}}),
    "apply_patch": ("apply_patch(a.txt)", {"path": {"pattern": "txt$"}}),
    "query": ("query(drop)", {"input": {"pattern": "^drop$"}}),
    "computer": ("computer", {"action": {"enum": ["wait", "screenshot"]}}),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_tool_can_be_judged(recorded: Recording, kind: str) -> None:
    entry, kept = OF_KIND[kind]
    agent, _, _ = other_kind(kind, [])
    trace = await recorded.run(agent)
    call = recorded.calls(trace)[0]
    assert decision(call).is_allowed
    refused = recorded.ask({"deny": [entry]}, trace)
    assert {(flip.tool, flip.after.rule) for flip in refused.flips} == {(call.tool.name, f"deny: {entry}")}
    name = entry.partition("(")[0]
    allowed = recorded.ask({"allow": [entry], "params": {name: kept}}, trace)
    assert (allowed.judged, allowed.flips) == (len(recorded.calls(trace)), ())


async def test_a_patch_that_moves_a_file_is_about_both_paths(recorded: Recording) -> None:
    call = patch_call("a.txt", "update_file")
    call["operation"] |= {"diff": "+x", "move_to": "secret/b.txt"}
    model = ScriptedModel([[call], [assistant_message("done")]])
    agent = Agent(
        "a", "x", model=model, tools=[ApplyPatchTool(editor=Editor(Executed()))], tool_providers=None
    )
    trace = await recorded.run(agent)
    assert recorded.ask({"deny": ["apply_patch(secret/b.txt)"]}, trace).newly_denied
    assert recorded.ask({"deny": ["apply_patch(a.txt)"]}, trace).newly_denied
    assert not recorded.ask({"deny": ["apply_patch(c.txt)"]}, trace).flips


async def test_tools_of_a_real_server_are_known_by_all_their_names(
    recorded: Recording, tmp_path: Path
) -> None:
    async with real_server(tmp_path / "calls.txt") as server:
        script: list[Any] = [
            {"tool": "read", "arguments": {"path": "a"}},
            {"tool": "delete", "arguments": {"path": "b"}},
            "ok",
        ]
        agent = Agent("a", "x", model=ScriptedModel(script), mcp_servers=[server], tool_providers=None)
        trace = await recorded.run(agent, {"deny": [f"mcp__{server.name}__delete"]})
    refused = recorded.ask({"params": {f"mcp__{server.name}": {"limit": {"maximum": 5}}}}, trace)
    (read,) = refused.newly_denied
    assert (read.tool, read.after.rule) == (
        "read",
        f"params: mcp__{server.name}.limit.maximum",
    )  # its default
    assert [flip.tool for flip in refused.newly_allowed] == ["delete"]
    # A pattern was written without knowing this server, so it does not cover the names that it chooses.
    assert recorded.ask({"allow": ["rea*"]}, trace).newly_denied[0].tool == "read"
    assert not recorded.ask({"allow": ["read"]}, trace).flips
    assert recorded.ask({"allow": [f"mcp__{server.name}__*"]}, trace).newly_allowed[0].tool == "delete"
