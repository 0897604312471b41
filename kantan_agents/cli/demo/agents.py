"""The agents of the demo, with scripted answers."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel

from kantan_agents.agent import Agent
from kantan_agents.core.pipeline import Stage
from kantan_agents.core.prompt import Prompt
from kantan_agents.models.rubric import RUBRIC, Rubric
from kantan_agents.testing import ReplyLike

QUESTION = "Where is my order 4711? It was promised for Monday."
KEYWORD = "4711"
PASS_MARK = 0.7

SUPPORT_PROMPT = Prompt(
    name="support-answer",
    version="v2",
    text=(
        "You answer the customers of a tea shop, in at most three sentences.\n"
        "The customer is {{ $ctx.customer.name }} ({{ $ctx.customer.plan }} plan).\n"
        "Look the order up before you answer."
    ),
    meta={"owner": "support team", "max_sentences": 3, "reviewed": True},
)

JUDGE_PROMPT = Prompt(
    name="answer-quality",
    version="v1",
    text=(
        "You judge the answers of a support team, strictly. The customer is "
        "{{ $ctx.customer.name }} ({{ $ctx.customer.plan }} plan).\n"
        "Score from 0.0 to 1.0; below 0.7 unless the answer apologises for a delay and names a new "
        "date. Begin every comment with its category, one word: empathy, completeness or accuracy."
    ),
)


class SupportAnswer(BaseModel):
    """The structured output of the support agent.

    Attributes:
        reply: The text for the customer.
        order_status: The status of the order.
        needs_human: Whether a person must follow up.
    """

    reply: str
    order_status: Literal["on time", "late", "delivered", "unknown"]
    needs_human: bool


def new_context() -> dict[str, Any]:
    """Return the initial context of the demo."""
    return {"customer": {"name": "Aiko Tanaka", "plan": "premium"}}


def look_up_order(order_id: str) -> str:
    """Look up an order by its number.

    Args:
        order_id: The number of the order.
    """
    order = {"order_id": order_id, "status": "in transit", "carrier": "Lantern Post"}
    return json.dumps({**order, "promised": "Monday", "expected": "Thursday"})


def support_agent(model: object, middleware: list[Stage]) -> Agent[SupportAnswer]:
    """Return the support agent, with its answer in ``context["answer"]``."""
    return Agent(
        "support",
        SUPPORT_PROMPT,
        model=model,
        tools=[look_up_order],
        output_type=SupportAnswer,
        output_dest="answer",
        middleware=middleware,
    )


def judge_agent(model: object, *, judged: str) -> Agent[Rubric]:
    """Return the judge; its rubric goes to ``context["verdict"]``.

    ``judged``, the trace id of the answer, links a low score to the prompt version.
    """
    return Agent(
        "judge",
        JUDGE_PROMPT,
        model=model,
        output_type=RUBRIC,
        output_dest="verdict",
        metadata={"judged_trace_id": judged},
        history=0,  # the judge must not see the customer's conversation
    )


def judge_input(context: dict[str, Any]) -> str:
    """Return the judge's input."""
    answer = context.get("answer") or {}
    return f"Question: {QUESTION}\nAnswer: {answer.get('reply', '')}"


def script() -> list[ReplyLike]:
    """Return the scripted model's replies."""
    return [
        {"tool": "look_up_order", "arguments": {"order_id": "4711"}},
        {
            "reply": "Order 4711 is in transit with Lantern Post and did not make it for Monday.",
            "order_status": "late",
            "needs_human": False,
        },
        {
            "score": 0.4,
            "comments": [
                "empathy - the delay is stated, and nobody says sorry for it",
                "completeness - the new date, Thursday, is not passed on",
            ],
        },
    ]
