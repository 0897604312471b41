"""The client behind the name of an embedding model."""

from __future__ import annotations

import anyio.to_thread
from openai import AsyncOpenAI

from kantan_agents.models.resolve import pool_for


async def embedding_client(name: str) -> tuple[AsyncOpenAI, str]:
    """Return the running loop's client for a model's name, and the name as its provider knows it.

    A name whose provider cannot be told goes to OpenAI if it begins as OpenAI's embedding models do.

    Raises:
        ModelNotFoundError: E19, kantan-llm knows no such model or lacks its configuration.
    """
    full = f"openai/{name}" if name.startswith("text-embedding-") else name
    # A client that is made for the first time reads certificates, which takes its time.
    model, pool = await anyio.to_thread.run_sync(pool_for, full)
    return pool.client(), model
