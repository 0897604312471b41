"""A user's program: the agents of a shop, and the models behind them.

``make_data`` runs it with the older layout, and the tests run it with this one, so it uses only names that
both have. The data identify agents and evaluators by their texts and their source: change none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
from agents import ModelSettings, OpenAIResponsesModel
from openai import AsyncOpenAI

from kantan_agents import (
    RUBRIC,
    Agent,
    AgentDefinition,
    Durable,
    Prompt,
    Rollout,
    StatusRule,
    ToolRetrieval,
    task_tool,
)
from kantan_agents.middleware import Approve, Cache
from kantan_agents.testing import OfflineServer, Reply, ScriptedToolCall

MODEL = "shop-model"
OLD = "Answer questions of {{ $ctx.customer }} about orders."
POLITE = f"{OLD} Be polite."
KEY = "a key that this test alone has"
CUSTOMER = {"customer": "Aiko"}
CENTURY = 3e9  # seconds for which a stored answer is given


@dataclass
class Bill:
    """What the agent ``biller`` gives."""

    order: str
    amount: float


def order_status(order_id: str) -> str:
    """Return the status of an order."""
    return f"order {order_id} is on its way"


def refund(order_id: str) -> str:
    """Pay an order back."""
    return f"order {order_id} is paid back"


def support(server: OfflineServer, text: str = OLD, version: str = "v1") -> Agent[Any]:
    """Return the agent that answers questions with two tools."""
    prompt = Prompt("support", version, text)
    return Agent("support", prompt, model=server.bundle(MODEL), tools=[order_status, refund])


def biller(server: OfflineServer) -> Agent[Any]:
    """Return an agent with structured output."""
    return Agent("biller", "Write the bill.", model=server.bundle(MODEL), output_type=Bill)


def lead(server: OfflineServer) -> Agent[Any]:
    """Return an agent that delegates."""
    checker = AgentDefinition(name="checker", description="Checks.", system_prompt="You check.")
    return Agent("lead", "You lead.", model=server.bundle(MODEL), tools=[task_tool([checker])])


def critic(server: OfflineServer, **options: Any) -> Agent[Any]:
    """Return a judge."""
    prompt = Prompt("critic", "v1", "Score the answer from 0 to 1.")
    return Agent("critic", prompt, model=server.bundle("judge-model"), output_type=RUBRIC, **options)


def greeter(server: OfflineServer, text: str = OLD, version: str = "v1") -> Agent[Any]:
    """Return an agent without tools, whose runs are evaluated and improved."""
    return Agent("greeter", Prompt("greeting", version, text), model=server.bundle(MODEL))


def shy(server: OfflineServer, place: Any) -> Agent[Any]:
    """Return an agent in whose place a rollout chooses the prompt."""
    rollout = Rollout(
        {"v1": Prompt("shy", "v1", OLD), "v2": Prompt("shy", "v2", POLITE)},
        shares={"v1": 0.5, "v2": 0.5},
        ramp=(0.5, 0.8, 1),
        unit="customer",
        metric="thumb",
        guards={"error": 0.5, "tokens": "+900%"},
        store=place,
    )
    return Agent("shy", rollout, model=server.bundle(MODEL))


def thrifty(model: OpenAIResponsesModel, cache: Cache) -> Agent[Any]:
    """Return an agent whose answers are cached."""
    return Agent("thrifty", "Answer.", model=model, middleware=[cache])


def distant_model(transport: httpx.AsyncBaseTransport) -> OpenAIResponsesModel:
    """Return a model with a fixed URL, whose requests go where ``transport`` sends them."""
    client = httpx.AsyncClient(transport=transport)
    return OpenAIResponsesModel(
        MODEL, AsyncOpenAI(api_key="offline", base_url="http://models.example/v1", http_client=client)
    )


class Embedding:
    """A model of embeddings; it has the texts that it was asked about."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text."""
        self.asked += texts
        return [[float("status" in text.lower()), float("pay" in text.lower()), 0.1] for text in texts]


def finder(server: OfflineServer, retriever: Any) -> Agent[Any]:
    """Return an agent that is shown one of its tools."""
    return Agent(
        "finder",
        "Find it.",
        model=server.bundle(MODEL),
        tools=[order_status, refund],
        tool_retrieval=ToolRetrieval(top_n=1, retriever=retriever),
    )


def is_polite(finished: Any) -> bool:
    """Return whether an answer is polite; the version of this evaluator is a hash of these lines."""
    return "Dear" in finished.text


def length(finished: Any) -> int:
    """Return how long an answer is."""
    return len(finished.text)


def versions(server: OfflineServer, package: Any) -> dict[str, str]:
    """Return the versions of evaluators, by which stored scores are found again.

    Args:
        server: The model of the judges.
        package: The package of evaluators.
    """
    model = server.bundle(MODEL)
    cold = critic(server, model_settings=ModelSettings(temperature=0.0, extra_args={"seed": 1}))
    made = {
        "function": package.as_evaluator(is_polite),
        "exact": package.exact(),
        "contains": package.contains("way"),
        "matches": package.matches("order [0-9]+"),
        "json_fields": package.json_fields("order"),
        "valid": package.valid(Bill),
        "used_tools": package.used_tools(package.call("refund", order_id="7")),
        "not_used": package.not_used("refund"),
        "latency": package.latency(most=2.0),
        "tokens": package.tokens(most=100),
        "cost": package.cost(most=0.5),
        "judged": package.judged(critic(server)),
        "judged with settings": package.judged(cold),
        "judged by a prompt": package.judged(Prompt("support", "v1", OLD), model=model),
        "status": package.status(
            [StatusRule("it is polite", "polite"), "other"], passing=["polite"], model=model
        ),
        "pairwise": package.pairwise(model=model),
    }
    return {name: one.version for name, one in made.items()}


def payer(server: OfflineServer) -> Agent[Any]:
    """Return an agent that asks a person; the paused run is stored as text."""
    return Agent("payer", "Pay.", model=server.bundle(MODEL), tools=[refund], middleware=[Approve("refund")])


class Clerk:
    """An agent whose runs are durable.

    Args:
        server: The model.
        effect: Called with what a tool does.
    """

    def __init__(self, server: OfflineServer, effect: Callable[[str], None]) -> None:
        async def look(what: str) -> dict[str, Any]:
            """Look at something."""
            effect(f"look {what}")
            return {"seen": what, "numbers": [1, 2.5, None]}

        async def pay(amount: int) -> str:
            """Pay an amount."""
            effect(f"pay {amount}")
            return f"paid {amount}"

        async def fail() -> str:
            """Fail."""
            effect("fail")
            raise ConnectionError("gone")

        async def send(to: str) -> str:
            """Send a parcel."""
            effect(f"send {to}")
            return f"sent to {to}"

        async def sign(paper: str) -> str:
            """Sign a paper."""
            effect(f"sign {paper}")
            return f"signed {paper}"

        checker = AgentDefinition(name="checker", description="Checks.", system_prompt="You check.")
        self.agent: Agent[Any] = Agent(
            "clerk",
            "Serve {{ $ctx.customer }}.",
            model=server.bundle(MODEL),
            tools=[look, pay, fail, send, sign, task_tool([checker])],
            tool_providers=None,
            output_type=Bill,
            output_dest="bill",
            middleware=[Approve("sign"), Durable(once=["pay"])],
        )


def _call(name: str, call_id: str, **arguments: Any) -> ScriptedToolCall:
    return ScriptedToolCall(name, arguments, id=call_id)


def _results(request: Any) -> int:
    return sum(item.get("type") == "function_call_output" for item in request.input)


def _of_clerk(request: Any, question: str) -> Any:
    """Answer as the model of ``clerk``: by the question, and by how many results it has."""
    count = _results(request)
    if question == "Sign.":
        return {"order": "signed", "amount": 1} if count else _call("sign", "s1", paper="contract")
    if question == "Break.":
        return Reply("no such model", status=400)
    if question == "Wait.":
        return {"order": "waited", "amount": 2}
    turns: dict[int, Any] = {
        0: [_call("look", "c1", what="sky"), _call("fail", "c2"), _call("pay", "c3", amount=3)],
        3: _call("Task", "c4", description="check", prompt="Check it.", subagent_type="checker"),
        4: _call("send", "c5", to="Oslo"),
        5: {"order": "sold", "amount": 3},
    }
    return turns[count]


def reply(request: Any) -> Any:
    """Answer as all models of the shop."""
    instructions = str(request.system_instructions)
    asked = [item for item in request.input if item.get("role") == "user"]
    question, last = str(asked[0]["content"]), request.input[-1]
    if instructions.startswith("You improve"):
        return {"changes": "It is polite.", "prompt": POLITE}
    if instructions.startswith("Score"):
        is_polite = "Dear" in str(last["content"])
        return {"score": float(is_polite), "comments": ["fine" if is_polite else "tone: greets nobody"]}
    if instructions.startswith("Serve"):
        return _of_clerk(request, question)
    if instructions.startswith("You check"):
        return "It is fine."
    if instructions.startswith("You lead"):
        task = {"description": "check", "prompt": "Check it.", "subagent_type": "checker"}
        return "All is checked." if _results(request) else ScriptedToolCall("Task", task, id="t1")
    if instructions.startswith(("Find", "Answer.")):
        return "Found."
    if instructions.startswith("Write the bill"):
        return {"order": "4711", "amount": 12.5}
    if instructions.startswith("Pay"):
        return "Done." if _results(request) else ScriptedToolCall("refund", {"order_id": "7"}, id="r1")
    if question == "Fail":
        return Reply("no such model", status=400)
    polite = "Dear customer: " if "polite" in instructions else ""
    order = question.rsplit(maxsplit=1)[-1]
    if question.startswith("Hello"):
        return f"{polite}order {order} is on its way"
    if last.get("type") == "function_call_output":
        return f"{polite}{last['output']}"
    name = "refund" if question.startswith("Refund") else "order_status"
    return ScriptedToolCall(name, {"order_id": order}, id="o1")
