"""Curves of subagent files: finding one agent by name, and loading all of them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.agent_files import PER_DIRECTORY, Folder
from benchmarks.growth.curve import Curve, Sides
from benchmarks.measure import timed, timed_call
from kantan_agents.subagent_files import AgentCatalog

SECONDS_UNTIL_TRUSTED = 0.1
"""The loader does not trust a very recent file time: another change could have the same one."""

_X = f"agent files, {PER_DIRECTORY} in a directory"
_SIZES = (1, 10, 100, 1_000, 3_000)
_QUICK_SIZES = (1, 100)


@asynccontextmanager
async def get_agent(size: int, folder: Path) -> AsyncIterator[Sides]:
    """Yield the search for one of ``size`` loaded agents."""
    loader = (await _filled(size, folder)).loader()
    names = itertools.cycle([agent.name for agent in _all(await loader.load_agents(), size)])

    async def get() -> None:
        name = next(names)
        agent = await loader.get_agent(name)
        if agent.name != name:
            raise RuntimeError(f"{agent.name!r} was found for {name!r}")

    yield Sides(ours=timed(get))


@asynccontextmanager
async def load_agents(size: int, folder: Path) -> AsyncIterator[Sides]:
    """Yield the first load of ``size`` agents; the other side reads the files that it can."""
    files = await _filled(size, folder)

    async def load() -> None:
        _all(await files.loader().load_agents(), size)

    readable = files.read_by_frontmatter()

    def read() -> None:
        if files.read_by_frontmatter() != readable:
            raise RuntimeError("not all files were read")

    yield Sides(ours=timed(load), other=timed_call(read), units=size)


@asynccontextmanager
async def reload_agents(size: int, folder: Path) -> AsyncIterator[Sides]:
    """Yield the repeated load of ``size`` agents whose files have not changed."""
    loader = (await _filled(size, folder)).loader()
    known = _all(await loader.load_agents(), size)

    async def load() -> None:
        again = _all(await loader.load_agents(), size)
        if next(iter(again)) is not next(iter(known)):
            raise RuntimeError("a file that has not changed was read again")

    yield Sides(ours=timed(load), units=size)


async def _filled(size: int, folder: Path) -> Folder:
    files = Folder.filled(folder / f"{size}-agents", size)
    await asyncio.sleep(SECONDS_UNTIL_TRUSTED)
    return files


def _all(catalog: AgentCatalog, size: int) -> AgentCatalog:
    if len(catalog) != size:
        raise RuntimeError(f"{len(catalog)} of {size} files were loaded: {catalog.problems[:3]}")
    return catalog


FILE_CURVES = (
    Curve(
        name="get-agent",
        title="get_agent, cached",
        x=_X,
        per="call",
        sizes=_SIZES,
        quick_sizes=_QUICK_SIZES,
        sides=get_agent,
    ),
    Curve(
        name="load-agents",
        title="load_agents, first",
        x=_X,
        per="file",
        sizes=_SIZES,
        quick_sizes=_QUICK_SIZES,
        sides=load_agents,
        other="python-frontmatter",
    ),
    Curve(
        name="reload-agents",
        title="load_agents, unchanged",
        x=_X,
        per="file",
        sizes=_SIZES,
        quick_sizes=_QUICK_SIZES,
        sides=reload_agents,
    ),
)
