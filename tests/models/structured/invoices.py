"""The output type and the agent that the tests of structured output share."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from kantan_agents import Agent


class Item(BaseModel):
    name: str
    price: float


class Invoice(BaseModel):
    number: str
    items: list[Item]
    paid: bool = False


DATA: dict[str, Any] = {"number": "A-1", "items": [{"name": "lamp", "price": 9.5}], "paid": True}
TEXT = json.dumps(DATA)


def invoice_agent(model: Any, **options: Any) -> Agent:
    return Agent(
        "clerk", "Read the invoice.", model=model, output_type=Invoice, output_dest="invoice", **options
    )
