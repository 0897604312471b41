"""A program with a durable agent that uses tools, delegates and gives structured output; it may be killed.

``python shop.py DATABASE LOG CASE KILL`` begins a run of the case. ``KILL`` is ``before 3`` or ``after 3``:
the process is killed around its third write. ``python shop.py DATABASE LOG`` makes the runs that were left.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import dataclass
from typing import Any

from kantan_agents import Agent, AgentDefinition, Durable, DurableRuns, record_traces, task_tool
from kantan_agents.durable.overseer import Overseer
from kantan_agents.durable.storage.steps import StepStore

LOG = ""


@dataclass
class Report:
    """What the agent gives."""

    total: int
    note: str


def effect(line: str) -> None:
    """Note something that has happened, so that it survives the process."""
    descriptor = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


async def look(case: str, what: str) -> str:
    """Look at something."""
    effect(f"{case} look {what}")
    return f"saw {what}"


async def pay(case: str, amount: int) -> str:
    """Pay an amount."""
    effect(f"{case} pay {amount}")
    return f"paid {amount}"


def shop(**options: Any) -> Agent[Any]:
    """Return the agent."""
    checker = AgentDefinition(name="checker", description="Checks.", system_prompt="You check.")
    given: dict[str, Any] = {
        "model": "gpt-6.1-terra",
        "tools": [look, pay, task_tool([checker])],
        "tool_providers": None,
        "output_type": Report,
        "output_dest": "report",
        "middleware": [Durable()],
        **options,
    }
    return Agent("shop", "You sell. Case {{ $ctx.case }}", **given)


class Killing:
    """Kills the process before or after a write of the steps."""

    def __init__(self, case: str, when: str, number: int) -> None:
        self.case = case
        self.count = 0
        for name in ("begin", "owns", "finish"):
            setattr(StepStore, name, self.around(name, getattr(StepStore, name), when, number))

    def around(self, name: str, write: Any, when: str, number: int) -> Any:
        """Return the write with a kill."""

        def killing(steps: StepStore, *arguments: str) -> Any:
            self.count += 1
            mine = self.count
            if (when, number) == ("before", mine):
                self.kill()
            done = write(steps, *arguments)
            if name == "finish":
                effect(f"{self.case} FINISHED {arguments[3]}")
            if (when, number) == ("after", mine):
                self.kill()
            return done

        return killing

    def kill(self) -> None:
        """End the process at once."""
        os.kill(os.getpid(), signal.SIGKILL)


def _look_away(_self: Overseer) -> None:
    """Leave the runs that were killed before to another process."""


async def begin(database: str, case: str, kill: str) -> None:
    """Begin a run that may be killed."""
    when, number = kill.split()
    counter = Killing(case, when, int(number))
    Overseer.look = _look_away  # type: ignore[assignment,method-assign]
    agent = shop()
    async with DurableRuns(database, agents=[agent], engine=os.environ["ENGINE"]):
        context = await agent.run_async("Sell.", {"case": case})
        print(context["report"], counter.count)


async def make_left(database: str) -> None:
    """Make the runs that were left, and print how they ended."""
    agent = shop()
    engine = os.environ["ENGINE"]
    async with DurableRuns(database, agents=[agent], look_interval=0.1, engine=engine) as runs:
        for run in await runs.list_runs(limit=1000):
            outcome = await runs.result(run.run_id, timeout=60)
            print(run.run_id, outcome.context["case"], outcome.output, outcome.context["report"])


if __name__ == "__main__":
    database, LOG, *rest = sys.argv[1:]
    record_traces(os.environ["TRACES"])
    asyncio.run(begin(database, *rest) if rest else make_left(database))
