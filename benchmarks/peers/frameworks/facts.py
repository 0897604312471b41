"""Instructions, inputs and answers that all frameworks share. Uses only the standard library."""

from __future__ import annotations

import json

AGENT = "bench"
INSTRUCTIONS = "You answer questions about the weather, briefly and politely."
QUESTION = "How is it in Oslo?"
ANSWER = "It is sunny."

USER_NAME = "Ann"
LOCALE = "en"
RENDERED = f"You answer questions about the weather. The user is {USER_NAME}; answer in {LOCALE}."
"""The rendered instructions of ``one_turn_rendered``, with the name and the locale."""

CITY = "Oslo"
CALL_ID = "call_1"
TOOL_NAME = "tool_0"
TOOL_ARGUMENTS = json.dumps({"city": CITY})
TOOL_DESCRIPTION = "Tell the weather."
CITY_DESCRIPTION = "Where."
TOOL_RESULT = f"sunny in {CITY}"

DEGREES = 21.5
SUNNY = True
REPORT = {"city": CITY, "degrees": DEGREES, "sunny": SUNNY}
REPORT_JSON = json.dumps(REPORT)

TARGETS = 10
"""Number of hand-off targets in both workloads with hand-offs."""
TARGET_ANSWER = "The target says: it is sunny."

DELTAS = tuple(f"word{number} " for number in range(1_000))
"""The deltas of the answer of ``streaming``."""
STREAMED = "".join(DELTAS)

MODEL = "gpt-4.1-mini"
KEY = "sk-benchmark"
BASE_URL_VARIABLE = "BENCHMARK_BASE_URL"
TRACE_FILE_VARIABLE = "BENCHMARK_TRACE_FILE"


def tool_name(number: int) -> str:
    """Return the name of the tool with this number, from 0."""
    return f"tool_{number}"


def target_name(number: int) -> str:
    """Return the name of the agent to hand over to with this number, from 0."""
    return f"target_{number}"


def expect(actual: object, expected: object) -> None:
    """Check the output of a run.

    Raises:
        ValueError: It differs from the expected one, so the figure would measure other work.
    """
    if actual != expected:
        raise ValueError(f"a run gave {actual!r:.300}, expected {expected!r:.300}")


async def do_not_wait() -> None:
    """Return at once; a fake model awaits this unless its run must wait."""
