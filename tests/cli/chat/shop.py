"""A module with agents for the chats, written into their working folder."""

from __future__ import annotations

from pathlib import Path

import pytest

SHOP = '''
import asyncio
import threading
from pathlib import Path

from agents import function_tool

from kantan_agents import Agent, AgentDefinition, SlashCommands
from kantan_agents.agent.delegation import task_tool


def look(what: str) -> str:
    """Look at something."""
    return f"{what}: seen"


def delete(path: str) -> str:
    """Delete a file."""
    return "deleted"


async def wait(what: str) -> str:
    """Wait for ever."""
    Path("waits.txt").write_text(what)
    await asyncio.sleep(3600)
    return "over"


def block(what: str) -> str:
    """Block a thread for ever."""
    threading.Event().wait()
    return "over"


@function_tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    with open("paid.txt", "a") as file:
        file.write(f"{amount}\\n")
    return f"paid {amount}"


@function_tool(needs_approval=True)
def lend(amount: int) -> str:
    """Lend an amount."""
    with open("paid.txt", "a") as file:
        file.write(f"lent {amount}\\n")
    return f"lent {amount}"


cashier = AgentDefinition(name="cashier", description="Pays.", system_prompt="Pay.")
agent = Agent(
    "shop",
    "Serve.",
    tools=[look, delete, wait, block, pay, lend, task_tool([cashier])],
    middleware=[SlashCommands({"allow": ["look", "wait"]})],
)
without_commands = agent.clone(middleware=[])
nothing = 3


def broken():
    raise OSError("no disk")
'''


@pytest.fixture
def shop(folder: Path) -> str:
    """An agent of a module in the working folder, for ``--agent``."""
    (folder / "shop.py").write_text(SHOP)
    return "shop:agent"


def paid(folder: Path) -> list[str]:
    """What was really paid."""
    file = folder / "paid.txt"
    return file.read_text().splitlines() if file.exists() else []
