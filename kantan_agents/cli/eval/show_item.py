"""Prints a result that a person is asked about, and after the answer what was hidden."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console

from kantan_agents.cli.terminal.console import LABEL, STRONG, pairs, plain
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.traces.input_items import item_text

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation import LabelItem, LabelledItem


def show_item(console: Console, item: LabelItem, total: int) -> None:
    """Print a result: what the agent was given, what it did and what it has answered."""
    console.print()
    console.print(plain(f"{item.number} of {total}: {one_line(item.case_id)}", STRONG))
    console.print(pairs(_parts(item)))


def show_answer(console: Console, answered: LabelledItem, metric: str) -> None:
    """Print what was hidden before the answer: the score of the evaluator, and in the end the variants."""
    said = [f"you say {one_line(answered.label or f'{answered.value:g}')}"]
    score = answered.scores.get(metric)
    if score is not None and score.value is not None:
        reason = " ".join(filter(None, (score.label, score.comment)))
        said.append(f"the judge says {score.value:g}{f' ({one_line(reason)})' if reason else ''}")
    elif score is not None:
        said.append("the judge has failed")
    names = [f"{number} is {one_line(name)}" for number, name in answered.variants.items()]
    console.print(plain("; ".join(filter(None, (", ".join(said), ", ".join(names)))), LABEL))


def _parts(item: LabelItem) -> Iterator[tuple[str, str]]:
    if isinstance(item.input, str):
        yield "input", item.input
    else:
        for number, one in enumerate(item.input):
            yield "" if number else "input", item_text(one)
    for number, (name, value) in enumerate(item.context.items()):
        yield "" if number else "context", f"{name}: {_text(value)}"
    for number, call in enumerate(item.tool_calls):
        outcome = "refused" if call.is_refused else _text(call.output)
        yield "" if number else "tools", f"{call.name}({_text(call.arguments)}): {outcome}"
    yield "output", _text(item.output)
    if item.expected is not None:
        yield "expected", _text(item.expected)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
