"""A program for an environment with the newest SDK, langchain-openai and pydantic-ai: each calls a model.

``nox -s beside_frameworks`` makes the environment by the commands of docs/start/install.md
and runs this file in it.
"""

from __future__ import annotations

import asyncio
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain_openai import ChatOpenAI
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from kantan_agents import Agent, TraceStore, record_traces
from kantan_agents.testing import OfflineServer

SHOWN = ("openai-agents", "openai", "kantan-llm", "langchain-openai", "pydantic-ai-slim")
OLDEST = (0, 21)  # the first SDK that needs openai 3
REPLIES = (
    {"tool": "read", "arguments": {"path": "notes.txt"}},
    {"tool": "delete", "arguments": {"path": "notes.txt"}},
    "Read it.",
)


def read(path: str) -> str:
    """Return the text of a file."""
    return f"{path}: buy milk"


def delete(path: str) -> str:
    """Delete a file."""
    raise AssertionError(f"{path} was deleted although the rules deny it")


async def check_kantan_agents(traces: Path) -> None:
    """Run an agent with a rule, and find the run in the trace database."""
    record_traces(traces)
    with OfflineServer(REPLIES) as server:
        agent = Agent(
            "reader",
            "Answer.",
            model=server.bundle("gpt-6.1-terra"),
            tools=[read, delete],
        )
        context: dict[str, Any] = {"tool_rules": {"deny": ["delete"]}}
        await agent.run_async("What is in the notes?", context)
    assert context["result"].final_output == "Read it."
    (trace,) = await TraceStore(traces).traces_async(agent="reader")
    assert trace.metadata["agent_name"] == "reader"


async def check_langchain() -> None:
    """Call a model through LangChain's client."""
    with OfflineServer(["Paris."]) as server:
        model = ChatOpenAI(model="gpt-6.1-terra", base_url=server.base_url, api_key="none")
        assert (await model.ainvoke("What is the capital of France?")).content == "Paris."


async def check_pydantic_ai() -> None:
    """Run an agent of pydantic-ai."""
    with OfflineServer(["Paris."]) as server:
        provider = OpenAIProvider(base_url=server.base_url, api_key="none")
        agent = PydanticAgent(OpenAIChatModel("gpt-6.1-terra", provider=provider))
        assert (await agent.run("What is the capital of France?")).output == "Paris."


async def main() -> None:
    """Show the versions and run all three."""
    for name in SHOWN:
        print(name, version(name))
    sdk = tuple(map(int, version("openai-agents").split(".")[:2]))
    assert sdk >= OLDEST, "the environment must have an SDK that needs openai 3"
    with tempfile.TemporaryDirectory() as folder:
        await check_kantan_agents(Path(folder, "traces.sqlite3"))
    await check_langchain()
    await check_pydantic_ai()
    print("kantan_agents, langchain-openai and pydantic-ai each had an answer")


if __name__ == "__main__":
    asyncio.run(main())
