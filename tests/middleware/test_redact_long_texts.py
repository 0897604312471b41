"""A long text is redacted in pieces, between which other tasks run."""

from __future__ import annotations

import json
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kantan_agents.errors import RedactedContentBlockedError
from kantan_agents.middleware.redact.placeholders import Placeholders, Replacements
from kantan_agents.middleware.redact.redaction import Redaction
from kantan_agents.middleware.redact.rules import make_rules
from kantan_agents.middleware.redact.text import TextRedaction

LONG = "".join(f"Mail to a{number}@b.com, or token=x{number}y4z5w6v7u8t9s0r1. " for number in range(450))


def redaction(*, blocks: bool = False) -> Redaction:
    rules = make_rules(None, 128)
    kept = Replacements("mask", b"", numbered=True, values={})
    return Redaction(rules, Placeholders(list(rules)), None if blocks else kept)


@pytest.mark.parametrize(
    "data",
    [LONG, json.dumps({"text": LONG, "list": [LONG[:500]] * 3}), [{"role": "user", "content": LONG}]],
    ids=["text", "json", "items"],
)
async def test_other_tasks_run_while_a_long_text_is_redacted_as_it_is_at_once(data: Any) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    in_pieces = redaction()
    async with anyio.create_task_group() as group:
        group.start_soon(count)
        await in_pieces.ahead(data, "")
        group.cancel_scope.cancel()
    assert turns >= len(LONG) // 4_096
    assert in_pieces.input(data, "") == redaction().input(data, "")


async def test_a_finding_in_a_long_text_ends_a_run_that_blocks() -> None:
    with pytest.raises(RedactedContentBlockedError):
        await redaction(blocks=True).ahead(LONG, "the input")


class CountedRule:
    """Finds nothing, and counts the characters that it gets."""

    def __init__(self, *, is_certain: bool) -> None:
        self.count = 0
        self._is_certain = is_certain

    def find(self, text: str, start: int, offset: int, *, whole: bool) -> tuple[list[Any], int]:
        self.count += len(text) - start
        return [], len(text) if whole or self._is_certain else start


@pytest.mark.parametrize(
    ("rule", "secrets"),
    [(CountedRule(is_certain=False), {}), (CountedRule(is_certain=True), make_rules("secret", 128))],
)
def test_a_withheld_text_is_searched_few_times(rule: CountedRule, secrets: dict[str, Any]) -> None:
    text = "-----BEGIN PRIVATE KEY-----" * 4_000
    rules = {"counted": rule, **secrets}
    redaction = TextRedaction(rules, lambda kind, _: f"[{kind}]", Placeholders(list(rules)))
    pieces = [text[place : place + 50] for place in range(0, len(text), 50)]
    passed = "".join(map(redaction.feed, pieces)) + redaction.end()
    assert passed == (f"{text[:27]}[secret]" if secrets else text)
    assert rule.count < (2 if secrets else 5) * len(text)
