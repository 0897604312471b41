"""Run ids and trace ids."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.traces import ids


def test_an_id_is_a_uuid_version_7_with_the_current_time() -> None:
    before = time.time_ns() // 1_000_000
    made = ids.new_run_id()
    after = time.time_ns() // 1_000_000
    assert re.fullmatch(r"[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}", made)
    assert before - 1 <= int(made[:12], 16) <= after + 1


def test_later_ids_sort_after_earlier_ones_across_threads() -> None:
    made: list[str] = []
    lock = threading.Lock()

    def work() -> None:
        for _ in range(500):
            with lock:
                made.append(ids.new_run_id())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == sorted(made)
    assert len(set(made)) == len(made)


@given(st.lists(st.integers(0, 2**45), min_size=2, max_size=20))
def test_the_order_is_strict_even_if_the_clock_goes_back(milliseconds: Any) -> None:
    clock = ids._Clock()
    stamps = []
    original = time.time_ns
    try:
        for value in milliseconds:
            ids.time.time_ns = lambda value=value: value * 1_000_000
            stamps.append(clock.now())
    finally:
        ids.time.time_ns = original
    assert stamps == sorted(set(stamps))


def test_a_trace_id_is_the_run_id_in_the_sdks_form() -> None:
    assert ids.trace_id_of("ab" * 16) == "trace_" + "ab" * 16
