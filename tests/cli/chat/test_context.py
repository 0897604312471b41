"""``/context`` shows what fills the context window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import handoff

from kantan_agents import Agent, Skill, skill_tools
from kantan_agents.cli.chat.commands.context import _table
from kantan_agents.cli.chat.compact import summary_items
from kantan_agents.cli.chat.context_parts import ContextPart, parts_before, parts_of
from kantan_agents.testing import OfflineServer, ScriptedModel
from tests.programs import Preloaded
from tests.tools.mcp.processes import Processes

PNG = "data:image/png;base64," + "A" * 100_000


def look(what: str) -> str:
    """Look at something."""
    return what


def delete(what: str) -> str:
    """Delete something."""
    return what


def kinds(parts: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for part in parts:
        found.setdefault(part.kind, []).append(part.origin)
    return found


def test_each_part_of_a_conversation_has_its_kind() -> None:
    text = {"type": "input_text", "text": "See @a.txt"}
    sent = {"type": "input_text", "text": "The file a.txt (3 bytes):\n\nabc"}
    image = {"type": "input_image", "image_url": PNG, "detail": "auto"}
    items = [
        *summary_items("We talked."),
        {"role": "user", "content": "Hi"},
        {"role": "user", "content": [text, sent, image]},
        {"type": "reasoning", "encrypted_content": "x" * 600},
        {"type": "function_call", "call_id": "1", "name": "look", "arguments": '{"what": "a"}'},
        {"type": "function_call_output", "call_id": "1", "output": "abc"},
        {"type": "function_call_output", "call_id": "2", "output": [image]},
        {"role": "assistant", "content": "Hello"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Bye"}]},
        {"type": "web_search_call", "status": "completed"},
    ]
    parts = list(parts_of(items))
    assert kinds(parts) == {
        "summary": ["We talked."],
        "your messages": ["Hi", "See @a.txt"],
        "files sent": ["The file a.txt (3 bytes):\n\nabc"],
        "images": ["images", "images"],
        "reasoning": ["reasoning"],
        "calls of tools": ['look {"what": "a"}'],
        "results of tools": ['look {"what": "a"}'],
        "answers": ["Hello", "Bye"],
        "other items": ["web_search_call"],
    }
    assert all(part.tokens < 1_100 for part in parts)  # the bytes of an image are not text


async def test_instructions_tools_skills_and_handoffs_are_parts() -> None:
    model = ScriptedModel([])
    billing = Agent("billing", "Bill.", model=model)
    skills = [Skill("refunds", "Decides about refunds. " * 20, "Refund.")]
    agent = Agent(
        "shop",
        "Serve {{ $ctx.who }}." + " Be kind." * 50,
        model=model,
        tools=[look, delete, *skill_tools(skills)],
        handoffs=[billing, handoff(billing.sdk_agent, tool_name_override="to_other")],
    )
    context = {"who": "Ada", "tool_rules": {"deny": ["delete"]}}
    parts = await parts_before(agent, context, {"/shop/AGENTS.md": " Be kind." * 10})
    found = kinds(parts)
    assert found["instructions"] == ["of shop"]
    assert found["project instructions"] == ["/shop/AGENTS.md"]
    assert found["tools of the agent"] == ["look"]  # what the rules deny is not sent
    assert "Skill" in found["descriptions of skills"]
    assert found["hand-offs"] == ["to billing", "to billing"]
    tokens = {part.kind: part.tokens for part in parts}
    assert tokens["instructions"] > tokens["project instructions"] > 0
    assert max(part.tokens for part in parts if part.kind == "descriptions of skills") > 100
    assert not model.calls and context == {"who": "Ada", "tool_rules": {"deny": ["delete"]}}


async def test_servers_are_not_started_and_their_tools_are_those_listed_last(
    tmp_path: Path, preloaded: Preloaded
) -> None:
    processes = Processes(tmp_path, preloaded)
    model = ScriptedModel(["Done."])
    agent = Agent("clerk", "Help.", model=model, mcp_servers=[processes.server("files")])
    assert kinds(await parts_before(agent, {}, {}))["tools of files (not listed yet)"] == [""]
    assert processes.log == []
    await agent.run_async("Go.")
    before = list(processes.log)
    listed = kinds(await parts_before(agent, {"tool_rules": {"deny": ["pay"]}}, {}))["tools of files"]
    assert "read" in listed and "pay" not in listed
    assert processes.log == before


def test_the_table_has_shares_and_the_largest_parts() -> None:
    parts = [ContextPart("answers", f"a\x1b[2J{n}\nb", 100 * n) for n in range(1, 8)]
    parts.append(ContextPart("a server \u202e" + "x" * 100, "", 1_200))
    lines = list(_table(parts))
    assert lines[0] == "The next request has about 4,000 tokens and your message:"
    assert lines[1].split() == ["answers", "about", "2,800", "70%"]
    assert "[U+202E]" in lines[2] and "30%" in lines[2]
    largest = lines[lines.index("The largest:") + 1 :]
    assert len(largest) == 5 and largest[1].split(maxsplit=2)[:2] == ["about", "700"]
    assert not any("\x1b" in line or "\n" in line for line in lines)


@pytest.mark.slow
def test_a_person_sees_it_before_and_after_an_answer_and_a_summary(chat: Any, folder: Path) -> None:
    (folder / "notes.txt").write_text("n" * 4_000)
    nothing = "No provider has counted a request of this conversation yet."
    with OfflineServer(["Fine.", "A summary."]) as server:
        terminal = chat(server, "--model", "gpt-6.1-terra", "--tools", ".")
        shown = terminal.enter("/context", until=nothing)
        assert "tools of the agent" in shown and "your messages" not in shown
        terminal.wait_for_prompt()
        terminal.ask("Read @notes.txt", "Fine.")
        shown = terminal.enter("/context", until="gpt-6.1-terra has counted 10 tokens for the last request.")
        assert "files sent" in shown and "files sent: The file notes.txt (4.0 KB)" in shown
        terminal.wait_for_prompt()
        terminal.ask("/compact", "A summary.")
        terminal.enter("/context", until=nothing, count=2)
        assert "  summary" in terminal.shown
    with OfflineServer([]) as server:
        terminal = chat(server, "--tools", ".", "--resume", "last")
        shown = terminal.enter("/context", until=nothing)
        assert "  summary" in shown and "files sent" not in shown
