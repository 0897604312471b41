"""A run as it was stored in format version 1, with everything that steps may have.

``python -m tests.durable.version_1`` writes ``stored/version_1.json`` again. It belongs to a version of the
format: once it is released, it is not written again but another one is added, so that old runs stay readable.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents import SQLiteSession, ToolOutputText

from kantan_agents import Agent, AgentDefinition, Durable, task_tool
from kantan_agents.middleware import Redact, UserRules
from kantan_agents.testing import RecordedRequest
from tests.durable.revival import Case, call, opened, results, revive

FILE = Path(__file__).with_name("stored") / "version_1.json"
MAIL = "found@private.example"
SESSION = SQLiteSession("version_1")


@dataclass
class Report:
    """What the agent gives."""

    total: int


def agent_of(case: Case) -> Agent[Any]:
    """Return the agent of the run."""

    async def look() -> dict[str, Any]:
        """Look."""
        case.effect("look")
        return {"mail": MAIL, "numbers": [1, 2.5, None, True]}

    async def show() -> ToolOutputText:
        """Show."""
        case.effect("show")
        return ToolOutputText(text="shown")

    async def fail() -> str:
        """Fail."""
        case.effect("fail")
        raise ValueError("nothing there")

    async def forbidden() -> str:
        """Do what the rules forbid."""
        case.effect("forbidden")
        return ""

    async def pay(to: str) -> str:
        """Pay."""
        case.effect(f"pay {to}")
        case.die()
        return "paid"

    checker = AgentDefinition(name="checker", description="Checks.", system_prompt="You check.")
    return case.agent(
        Redact(restore=True, keep_in="kept"),
        Durable(session=lambda _: SESSION),
        tools=[look, show, fail, forbidden, pay, task_tool([checker])],
        output_type=Report,
    )


def reply(request: RecordedRequest) -> Any:
    """Return what its models say."""
    count = len(results(request))
    if "You check" in (request.system_instructions or ""):
        return "fine" if count else [call("show", "k1")]
    turns: dict[int, Any] = {
        0: [call("look", "c1"), call("show", "c2"), call("fail", "c3"), call("forbidden", "c4")],
        4: [call("Task", "c5", description="d", prompt="check", subagent_type="checker")],
        5: [call("pay", "c6", to="[email_1]")],
        6: {"total": 3},
    }
    return turns[count]


async def _begin(agent: Agent[Any], case: Case) -> None:
    context = {
        "tool_rules": {"deny": ["forbidden"]},
        "user": "aiko",
        "user_rules": UserRules({"deny": ["pay"]}),
    }
    await agent.run_async(case.input, context, session=SESSION, max_turns=9)


def case_of() -> Case:
    """Return the run."""
    return Case(agent_of, reply, begin=_begin)


def written() -> dict[str, Any]:
    """Make the run until its process ends, and return what is stored of it."""
    rows: dict[str, Any] = {}
    asyncio.run(SESSION.clear_session())

    def read(database: str) -> None:
        with opened(database) as connection:
            (inputs,) = connection.execute("SELECT inputs FROM workflow_input").fetchone()
            (rows["run_id"],) = connection.execute("SELECT run_id FROM kantan_agents_durable_runs").fetchone()
            rows["stored"] = json.loads(json.loads(inputs)["positionalArgs"][0])
            rows["steps"] = [
                {"run_id": run_id, "step": step, "body": None if body is None else json.loads(body)}
                for run_id, step, body in connection.execute(
                    "SELECT run_id, step, body FROM kantan_agents_durable_steps ORDER BY rowid"
                )
            ]

    with tempfile.TemporaryDirectory() as folder:
        revive(Path(folder), {"version_1": case_of()}, between=read, goes_on=False)
    return rows


if __name__ == "__main__":
    FILE.write_text(json.dumps(written(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
