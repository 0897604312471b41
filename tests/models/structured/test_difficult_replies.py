# ruff: noqa: RUF001 - full-width punctuation
"""More than forty real replies of models: each gives the answer, or an error that lists the attempts."""

from __future__ import annotations

import json

import pytest

from kantan_agents.errors import StructuredOutputError
from kantan_agents.testing import OfflineServer
from tests.models.structured.invoices import DATA, TEXT, invoice_agent

PRETTY = json.dumps(DATA, indent=2)
ECHOED = '{"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]}'

HOME = {
    "as it should be": TEXT,
    "indented": PRETTY,
    "in a fence": f"```json\n{PRETTY}\n```",
    "in a fence without a language": f"```\n{TEXT}\n```",
    "in a fence of tildes": f"~~~json\n{TEXT}\n~~~",
    "prose around a fence": f"Sure! Here you go:\n\n```json\n{PRETTY}\n```\n\nAnything else?",
    "prose around": f"The invoice is {TEXT} as far as I can tell.",
    "the word json before": f"json\n{TEXT}",
    "a byte order mark": f"\ufeff{TEXT}",
    "thoughts before": f"<think>The number is A-1.</think>\n{TEXT}",
    "thoughts with an object": f'<think>Maybe {{"number": "B-2", "items": []}}?</think>\n{TEXT}',
    "trailing commas": '{"number": "A-1", "items": [{"name": "lamp", "price": 9.5,},], "paid": true,}',
    "single quotes": "{'number': 'A-1', 'items': [{'name': 'lamp', 'price': 9.5}], 'paid': true}",
    "a Python dict": "{'number': 'A-1', 'items': [{'name': 'lamp', 'price': 9.5}], 'paid': True}",
    "keys without quotes": '{number: "A-1", items: [{name: "lamp", price: 9.5}], paid: true}',
    "line comments": '{"number": "A-1", // yes\n"items": [{"name": "lamp", "price": 9.5}], "paid": true}',
    "block comments": '{"number": "A-1", /* ok */ "items": [{"name": "lamp", "price": 9.5}], "paid": true}',
    "curly quotes": TEXT.replace('"', "”").replace("”number", "“number"),
    "full-width punctuation": TEXT.translate(str.maketrans("{}[]:,", "｛｝［］：，")),
    "an example before": f'For example {{"number": "X"}}. The answer: {TEXT}',
    "an example in a fence before": f'```json\n{{"number": "X"}}\n```\nSo:\n```json\n{TEXT}\n```',
    "the schema before": f"Schema:\n{ECHOED}\nAnswer:\n{TEXT}",
    "in a list": f"[{TEXT}]",
    "JSON in a JSON text": json.dumps(TEXT),
    "Japanese around": f"請求書は次のとおりです。\n{TEXT}\n以上です。",
    "Chinese around": f"好的，结果如下：{TEXT}。",
    "formulas before": f"With $\\frac{{a}}{{b}}$ in mind: {TEXT}",
    "markers before": f"Hello {{{{ name }}}}, here it is: {TEXT}",
    "code before": f"```js\nfunction f() {{ return 1; }}\n```\n```json\n{TEXT}\n```",
    "one key too many": TEXT.replace('"paid"', '"currency": "EUR", "paid"'),
    "a null for what has a default": TEXT.replace("true", "null"),
}
NOWHERE = {
    "nothing": "",
    "white space": " \n\t ",
    "prose": "I could not read the invoice, sorry.",
    "prose in another language": "申し訳ありませんが、請求書を読み取れませんでした。",
    "a key missing": '{"number": "A-1"}',
    "a number as words": TEXT.replace("9.5", '"nine and a half"'),
    "the answer one level down": f'{{"invoice": {TEXT}}}',
    "the schema": ECHOED,
    "cut in a list": '{"number": "A-1", "items": [{"name": "lamp", "price": 9.5}, {"name": "ta',
    "cut in the last value": '{"number": "A-1", "items": [{"name": "lamp", "price": 9.5}], "paid": tr',
    "a null for what has none": TEXT.replace('"A-1"', "null"),
    "YAML": "number: A-1\nitems:\n  - name: lamp\n    price: 9.5",
    "XML": "<invoice><number>A-1</number></invoice>",
    "a table": "| number | paid |\n| --- | --- |\n| A-1 | yes |",
    "ten thousand brackets": "[" * 10_000 + "]" * 10_000,
    "ten thousand braces": '{"number": ' * 10_000,
    "a number": "42",
    "only a fence": "```json\n```",
}


def test_there_are_at_least_forty_replies() -> None:
    assert len(HOME) + len(NOWHERE) >= 40


@pytest.mark.parametrize("reply", HOME.values(), ids=HOME.keys())
async def test_a_reply_that_contains_the_answer_gives_it(reply: str) -> None:
    with OfflineServer(lambda _request: reply) as server:
        context = await invoice_agent(server.bundle(api="chat")).run_async("Read it")
    found = context["invoice"]
    assert found == DATA | {"paid": found["paid"]}
    assert found["paid"] is ("null" not in reply)
    assert len(server.requests) == 1


@pytest.mark.parametrize("reply", NOWHERE.values(), ids=NOWHERE.keys())
async def test_a_reply_without_the_answer_is_an_error_with_the_attempts(reply: str) -> None:
    with OfflineServer(lambda _request: reply) as server, pytest.raises(StructuredOutputError) as caught:
        await invoice_agent(server.bundle(api="chat")).run_async("Read it")
    error = caught.value
    assert error.code == "E40"
    assert error.text == reply
    assert len(error.attempts) == len(server.requests)
    assert [attempt.text for attempt in error.attempts] == [reply] * len(server.requests)
    assert all(str(attempt) in str(error) for attempt in error.attempts)


@pytest.mark.parametrize("reply", NOWHERE.values(), ids=NOWHERE.keys())
async def test_a_repair_of_such_a_reply_gives_the_answer(reply: str) -> None:
    with OfflineServer([reply, TEXT]) as server:
        context = await invoice_agent(server.bundle(api="chat")).run_async("Read it")
    assert context["invoice"] == DATA
    assert len(context["history"]) == 2  # input and answer; what went wrong between is not part of it
