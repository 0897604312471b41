"""How long the library waits before it connects an MCP server again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.tools.mcp.backoff import BACKOFF

_JITTER = 0.2


@given(number=st.integers(1, 10_000))
def test_waits_and_rests_double_and_are_bounded(number: int) -> None:
    rest = min(BACKOFF.first_rest * 2.0 ** min(number - 1, 100), BACKOFF.longest_rest)
    assert rest * (1 - _JITTER) <= BACKOFF.rest(number) <= rest * (1 + _JITTER)
    if number < BACKOFF.attempts:
        wait = BACKOFF.first_wait * 2 ** (number - 1)
        assert wait * (1 - _JITTER) <= BACKOFF.wait(number) <= wait * (1 + _JITTER)


def test_all_attempts_fit_into_the_total() -> None:
    waits = sum(BACKOFF.first_wait * 2**number * (1 + _JITTER) for number in range(BACKOFF.attempts - 1))
    assert waits < BACKOFF.total
