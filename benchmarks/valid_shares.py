"""Measures how many answers of a model are valid, by the wording of the prompt form and by output mode.

    KANTAN_LLM_BASE_URL=http://127.0.0.1:8080/v1 python benchmarks/valid_shares.py compat/NAME [--answers 60]

Nothing is repaired: a share is that of first answers that fit the schema, with its 95% interval (Wilson). An
answer *copies* if a text in it is that of the example. The model samples as its server does by default.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import platform
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal, cast

import attrs
from agents import ModelSettings, set_trace_processors
from agents.exceptions import MaxTurnsExceeded
from pydantic import BaseModel

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from kantan_agents import Agent, StructuredOutputError
from kantan_agents.core.pipeline import run_result
from kantan_agents.errors import DeadlineExceededError
from kantan_agents.middleware import Deadline
from kantan_agents.models.structured.requests.agent_output import AgentOutput, agent_output
from kantan_agents.models.structured.requests.encoding import example_text, schema_text
from kantan_agents.models.structured.requests.forms import Delivery
from kantan_agents.models.structured.requests.reading import read
from kantan_agents.testing import OfflineServer, RecordedRequest

SECONDS = 60
TOKENS = 100
INSTRUCTIONS = "You are a helpful assistant."
Z = 1.96
HEADING = "| Valid | 95% interval"


class City(BaseModel):
    """A city."""

    city: str
    country: str


class Ticket(BaseModel):
    """A ticket."""

    subject: str
    urgency: Literal["low", "medium", "high"]
    days: int


class Item(BaseModel):
    """One line of an order."""

    name: str
    quantity: int


class Order(BaseModel):
    """An order."""

    customer: str
    items: list[Item]


@attrs.frozen
class Task:
    """A question, and the type of its answer."""

    output: type[BaseModel]
    question: str

    @property
    def schema(self) -> AgentOutput:
        """The schema of the answer."""
        made = agent_output(self.output, Delivery())
        return cast("AgentOutput", made)


TASKS = (
    Task(City, "What is the capital of France?"),
    Task(Ticket, "The printer on the third floor has been broken for two days. Everybody is angry."),
    Task(Order, "Ann wants to buy two lamps and a chair."),
)


def fields_text(schema: AgentOutput) -> str:
    """Return the properties as a list."""
    properties = schema.plain["properties"].items()
    lines = "\n".join(f"- {name} ({node.get('type', 'value')})" for name, node in properties)
    return f"Reply with ONLY a JSON object with these fields:\n{lines}"


def _schema(schema: AgentOutput) -> str:
    return schema_text(schema, beside_tools=False)


Make = Callable[[AgentOutput], str]
WORDINGS: dict[str, tuple[Make | None, Make | None]] = {
    "the schema in the instructions": (_schema, None),
    "the schema in the instructions, an example after the question": (_schema, example_text),
    "the fields in the instructions, an example after the question": (fields_text, example_text),
    "an example in the instructions": (example_text, None),
    "an example after the question": (None, example_text),
}
"""What is added to the instructions, and what to the question."""


@attrs.define
class Share:
    """How many of the answers were valid."""

    name: str
    answers: int = 0
    valid: int = 0
    copied: int = 0
    called: int = 0

    def interval(self) -> tuple[float, float]:
        """Return the 95% interval of the share of valid answers (Wilson)."""
        n = max(self.answers, 1)
        share = self.valid / n
        centre = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
        half = Z * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n)) / (1 + Z * Z / n)
        return max(centre - half, 0.0), min(centre + half, 1.0)

    def row(self, *further: object) -> str:
        """Return the row of a Markdown table."""
        low, high = self.interval()
        share = f"{self.valid} of {self.answers}"
        cells = (self.name, share, f"{low:.0%} to {high:.0%}", *map(str, further))
        return f"| {' | '.join(cells)} |"


class Weather(BaseModel):
    """The weather in a city."""

    city: str
    degrees: int


WEATHER = Task(Weather, "How warm is it in Oslo now?")


def tasks_of(answers: int) -> list[Task]:
    """Return the tasks in turn."""
    return list(islice(cycle(TASKS), answers))


def new_agent(model: Any, instructions: str, **options: Any) -> Agent[Any]:
    """Return an agent that repairs nothing and ends in time."""
    settings = ModelSettings(max_tokens=TOKENS)
    return Agent(
        "measured",
        instructions,
        model=model,
        model_settings=settings,
        middleware=[Deadline(SECONDS)],
        **options,
    )


async def of_wording(model: Any, name: str, answers: int) -> Share:
    """Return the share of a wording."""
    share = Share(name)
    for task in tasks_of(answers):
        schema = task.schema
        before, after = ("" if make is None else make(schema) for make in WORDINGS[name])
        agent = new_agent(model, f"{INSTRUCTIONS}\n\n{before}".rstrip())
        try:
            text = str(run_result(await agent.run_async(f"{task.question}\n\n{after}".rstrip())).final_output)
        except DeadlineExceededError:
            text = ""
        found = read(text, schema).text
        share.answers += 1
        share.valid += found is not None
        share.copied += found is not None and '"..."' in found
    return share


def thermometer(called: list[str]) -> Callable[[str], str]:
    """Return a tool that notes its calls."""

    def temperature(city: str) -> str:
        """Return the temperature in a city now."""
        called.append(city)
        return f"In {city} it is 4 degrees."

    return temperature


async def of_mode(model: Any, name: str, answers: int, *, beside_tool: bool, **options: Any) -> Share:
    """Return the share of an output mode; beside a tool, with a question that needs it."""
    share = Share(name)
    for task in answers * [WEATHER] if beside_tool else tasks_of(answers):
        called: list[str] = []
        if beside_tool:
            options["tools"] = [thermometer(called)]
        agent = new_agent(model, INSTRUCTIONS, output_type=task.output, output_repairs=0, **options)
        share.answers += 1
        with suppress(StructuredOutputError, DeadlineExceededError, MaxTurnsExceeded):
            await agent.run_async(task.question, max_turns=4)
            share.valid += 1
        share.called += bool(called)
    return share


MODES: tuple[tuple[str, bool, dict[str, Any]], ...] = (
    ("native", False, {"output_mode": "native"}),
    ("tool", False, {"output_mode": "tool"}),
    ("prompt", False, {"output_mode": "prompt"}),
    ("auto", False, {}),
    ("native (before: auto)", True, {"output_mode": "native"}),
    ("tool", True, {"output_mode": "tool"}),
    ("prompt", True, {"output_mode": "prompt"}),
    ("auto", True, {}),
)


async def main(model: Any, answers: int, only: Sequence[str]) -> None:
    """Print the tables."""
    name = getattr(model, "model", model)
    print(f"{name}, {answers} answers, {platform.machine()}, Python {platform.python_version()}, "
          f"openai-agents {version('openai-agents')}, openai {version('openai')}")  # fmt: skip
    if not only or "wordings" in only:
        print(f"\n| In prompt mode {HEADING} | Copied |\n| --- | --- | --- | --- |")
        for name in WORDINGS:
            share = await of_wording(model, name, answers)
            print(share.row(share.copied), flush=True)
    for beside_tool, title, more in ((False, "alone", ""), (True, "beside a tool", " | Called the tool")):
        if only and title.split()[0] not in only:
            continue
        print(f"\n| Mode, {title} {HEADING}{more} |\n| --- | --- | --- |{' --- |' if more else ''}")
        for name, with_tool, options in MODES:
            if with_tool == beside_tool:
                share = await of_mode(model, name, answers, beside_tool=with_tool, **options)
                print(share.row(*([share.called] if more else [])), flush=True)


def scripted(request: RecordedRequest) -> Any:
    """Answer as a model that follows examples and schemas, and calls no tools."""
    fits = request.body.get("response_format") or "in this form" in str(request.body["messages"][-1])
    return {"city": "Oslo", "country": "Norway", "degrees": 4} if fits else "In Oslo."


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?")
    parser.add_argument("--answers", type=int, default=60)
    parser.add_argument("--only", nargs="*", default=(), choices=("wordings", "alone", "beside"))
    parser.add_argument("--quick", action="store_true", help="ask a scripted server, to see that it runs")
    given = parser.parse_args()
    set_trace_processors([])
    if given.quick:
        with OfflineServer(scripted) as server:
            asyncio.run(main(server.bundle(api="chat"), 3, given.only))
    else:
        asyncio.run(main(given.model, given.answers, given.only))
