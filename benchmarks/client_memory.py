"""Measure what the clients of many models, keys and providers cost: `python -m benchmarks.client_memory`.

Makes 1,000 agents or providers of each kind and prints the memory that they need. Then makes, uses and drops
1,000 others one by one, without a garbage collection, and prints the memory and the open files that this
adds, those of the server included.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents import set_tracing_disabled

from kantan_agents import Agent, AnthropicProvider
from kantan_agents.testing import OfflineServer

COUNT = 1_000
PAGE = os.sysconf("SC_PAGE_SIZE")


def memory() -> float:
    """Return the resident memory in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 2**20


def files() -> int:
    """Return the number of open files."""
    return len(list(Path("/proc/self/fd").iterdir()))


def of_models(number: int) -> Any:
    """Make an agent with a model name of its own."""
    return Agent("a", "x", model=f"openai/m-{number}")


def of_keys(number: int) -> Any:
    """Make an agent with an API key of its own, as for a customer."""
    os.environ["OPENAI_API_KEY"] = f"key-{number}"
    return Agent("a", "x", model="openai/m")


def of_providers(number: int) -> Any:
    """Make a provider, as a service does that makes one for each request."""
    return AnthropicProvider(f"claude-{number}", api_key="x")


async def main(make: Callable[[int], Any]) -> None:
    """Measure one kind."""
    gc.disable()
    set_tracing_disabled(True)
    with OfflineServer(lambda _: "ok", keep_alive=True) as server:
        os.environ.update(server.environment())

        async def use(made: Any) -> None:
            if isinstance(made, Agent):
                await made.run_async("hi")

        await use(make(-1))
        before, began = memory(), time.perf_counter()
        kept = [make(number) for number in range(COUNT)]
        grown, seconds = memory() - before, time.perf_counter() - began
        print(f"{make.__name__:13} made: +{grown:.1f} MiB in {seconds:.2f} s; ", end="")
        del kept
        gc.collect()
        before, open_before = memory(), files()
        for number in range(COUNT):
            await use(make(COUNT + number))
        print(f"used one by one: +{memory() - before:.1f} MiB, +{files() - open_before} files", flush=True)


if __name__ == "__main__":
    kinds = {kind.__name__: kind for kind in (of_models, of_keys, of_providers)}
    for name in sys.argv[1:] or kinds:
        if sys.argv[1:]:
            asyncio.run(main(kinds[name]))
        else:
            os.system(f"{sys.executable} -m benchmarks.client_memory {name}")
