"""Records a week of a tea shop's support agents into a database, for the pictures of the page.

The models are scripted and answer over HTTP from this machine. Two versions of a prompt, refused calls, a
hand-off, a failed tool, verdicts of a judge, an evaluation with labels and a replay with another prompt.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from kantan_agents import RUBRIC, Agent, Prompt, TraceStore, record_traces
from kantan_agents.lab.evaluation import Case, Dataset, LabelQueue, evaluate, evaluator
from kantan_agents.lab.replay import Change, Cohort, replay_cohort
from kantan_agents.testing import OfflineServer, ScriptedToolCall

MODEL = "gpt-6.1-terra"
QUESTIONS = (
    "Where is my order {}?",
    "Order {} has not arrived, and it was promised for Monday 😟",
    "注文 {} はいつ届きますか。",
    "订单 {} 什么时候到？",
    "Please cancel order {} and refund it.",
    "Is order {} gift-wrapped?",
)
BROKEN = "4733"
"""The order for which the model's server sends an error."""
RULES = {"params": {"refund_order": {"order_id": {"pattern": "^[0-3]"}}}}
V1 = Prompt(
    "support",
    "v1",
    "You answer the customers of a tea shop.\nLook the order up before you answer.",
)
V2 = Prompt(
    "support",
    "v2",
    "You answer the customers of a tea shop, in at most three sentences.\n"
    "Look the order up before you answer.\nIf an order is late, apologize and name the new date.",
)


class Billing(BaseModel):
    """What the billing agent decides.

    Attributes:
        refund: Whether the order is refunded.
        reason: Why.
    """

    refund: bool
    reason: str


def look_up_order(order_id: str) -> str:
    """Look up an order by its number.

    Args:
        order_id: The number of the order.
    """
    if int(order_id) % 11 == 0:
        raise RuntimeError("the warehouse does not answer")
    late = int(order_id) % 3 == 0
    return f'{{"order_id": "{order_id}", "status": "{"late" if late else "on its way"}", "expected": "Thursday"}}'


def refund_order(order_id: str) -> str:
    """Refund an order."""
    return f"Order {order_id} is refunded."


def answer(request: Any) -> Any:
    """Answer as a model that follows its instructions."""
    instructions, last = request.system_instructions or "", request.input[-1]
    if "You judge" in instructions:
        is_kind = "sorry" in str(request.input)
        comment = (
            "empathy - it says sorry"
            if is_kind
            else "empathy - nobody says sorry for the delay"
        )
        return {"score": 0.9 if is_kind else 0.4, "comments": [comment]}
    if "You decide about refunds" in instructions:
        return {"refund": False, "reason": "The order is younger than 14 days."}
    if last.get("type") != "function_call_output":
        number = "".join(filter(str.isdigit, last["content"]))[:4]
        if number == BROKEN:
            return {"status": 401, "text": "the key has expired"}
        tool = "refund_order" if "refund" in last["content"] else "look_up_order"
        return ScriptedToolCall(tool, {"order_id": number})
    if "E15" in last["output"]:  # the rules have refused the call
        return ScriptedToolCall("transfer_to_billing", {})
    if '"late"' in last["output"]:
        sorry = (
            "We are sorry: your order is late."
            if "apologize" in instructions
            else "It is late."
        )
        return f"{sorry} We expect it on Thursday. 木曜日に届く予定です。"
    return "It is on its way, and we expect it on Thursday. 🍵"


def support(server: OfflineServer, prompt: Prompt = V1) -> Agent[Any]:
    """Return the support agent, which hands refunds over to billing."""
    billing = Agent(
        "billing",
        Prompt("billing", "v1", "You decide about refunds."),
        model=server.bundle(MODEL),
        output_type=Billing,
        output_dest="billing",
    )
    return Agent(
        "support",
        prompt,
        model=server.bundle(MODEL),
        tools=[look_up_order, refund_order],
        handoffs=[billing],
    )


def judge(server: OfflineServer, judged: str) -> Agent[Any]:
    """Return the judge of an answer."""
    return Agent(
        "judge",
        Prompt("answer-quality", "v1", "You judge the answers of a support team."),
        model=server.bundle(MODEL),
        output_type=RUBRIC,
        output_dest="verdict",
        metadata={"judged_trace_id": judged},
        history=0,
    )


@evaluator
def apologizes(finished: Any) -> float | None:
    """Whether a late order comes with an apology."""
    return None if "late" not in finished.text else float("sorry" in finished.text)


@evaluator(source="model")
def kind(finished: Any) -> float:
    """A judge's score, for the labelling queue."""
    return 0.9 if "sorry" in finished.text else 0.6


def record(path: Path) -> None:
    """Record everything into a new database."""
    recorder = record_traces(path)
    with OfflineServer(answer) as server:
        for number in range(4700, 4748):
            question = QUESTIONS[number % len(QUESTIONS)].format(number)
            agent = support(server, V2 if number >= 4720 else V1)
            if str(number) == BROKEN:
                with suppress(Exception):
                    agent.run(question)
                continue
            context = agent.run(question, {"tool_rules": RULES})
            if number % 2:
                judge(server, TraceStore(path).trace("LAST").trace_id).run(
                    f"Question: {question}\nAnswer: {context['result'].final_output}"
                )
        recorder.force_flush()
        store = TraceStore(path)
        cases = [
            Case(QUESTIONS[0].format(one), id=str(one))
            for one in range(1000, 1036)
            if one % 11
        ]
        evaluation = evaluate(
            {"v1": V1, "v2": V2},
            Dataset("orders", cases),
            [apologizes, kind],
            agent=support(server),
            name="apologize",
            store=store,
        )
        queue = LabelQueue.of(evaluation, "kind", by="Aiko", sample=24, seed=1)
        for _ in range(8):
            if queue.current is not None:
                queue.label(queue.current, float("sorry" in str(queue.current.output)))
        cohort = Cohort.select(store, prompt="support", version="v1")
        replay_cohort(cohort, support(server), Change.prompt(V2), name="v2 last week")
    recorder.shutdown()


if __name__ == "__main__":
    record(Path(sys.argv[1]))
