"""Checked by mypy and pyright in CI: what resources and prompts of MCP servers infer to."""

from __future__ import annotations

from agents.mcp import MCPServer, MCPServerStdio
from typing_extensions import assert_type

from kantan_agents import Agent, MCPPrompt, Prompt, mcp_prompt, resource_text, with_resources


async def offers(server: MCPServerStdio) -> None:
    async with with_resources(server, max_characters=1_000) as connected:
        offered: MCPServer = connected
        Agent("a", "x", mcp_servers=[offered])
    assert_type(await resource_text(offered, "notes://1"), str)
    prompt = await mcp_prompt(offered, "review", {"file": "main.py"})
    assert_type(prompt, MCPPrompt)
    assert_type(prompt.as_instructions("v1"), Prompt)
    assert_type(prompt.text, str)
    await Agent("a", prompt.as_instructions()).run_async(list(prompt.items))
    with_resources("docs")  # type: ignore[arg-type]
    await mcp_prompt(offered, "review", {"file": 3})  # type: ignore[dict-item]
