"""A property whose case never happened fails, and nothing else about a property test changes."""

from __future__ import annotations

import contextvars
import os
import queue
import threading
from pathlib import Path

import pytest
from hypothesis import Phase, assume, example, given, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from kantan_agents import Agent
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing import ScriptedModel
from kantan_agents.testing.properties import event, expect_events
from tests.programs import Preloaded

from .workers import on_two_workers

QUIET = settings(database=None, deadline=None, max_examples=40)


def test_an_event_that_never_happened_fails_the_property_and_says_what_did() -> None:
    @QUIET
    @expect_events("big", "small")
    @given(st.integers(0, 9))
    def check(number: int) -> None:
        event("small" if number < 10 else "big")

    with pytest.raises(AssertionError) as caught:
        check()
    message = str(caught.value)
    assert "'big' did not happen in any of " in message
    assert "What happened: 'small' in " in message


def test_events_that_happened_once_are_enough() -> None:
    seen = []

    @QUIET
    @expect_events("seven", "other")
    @given(st.integers(0, 9))
    def check(number: int) -> None:
        seen.append(number)
        event("seven" if number == 7 else "other")

    check()
    assert 7 in seen


def test_a_rare_event_is_given_more_examples() -> None:
    runs = []

    # If it were derandomized, every round would be the same.
    @settings(QUIET, max_examples=10, derandomize=False)
    @expect_events("late")
    @given(st.integers())
    def check(_number: int) -> None:
        runs.append(1)
        if len(runs) > 10:
            event("late")

    check()
    assert 10 < len(runs) <= 20


def test_repeated_examples_are_drawn_once() -> None:
    runs = []

    @settings(QUIET, max_examples=10, derandomize=True)
    @expect_events("never")
    @given(st.integers())
    def check(_number: int) -> None:
        runs.append(1)

    with pytest.raises(AssertionError, match="'never' did not happen in any of 10 examples"):
        check()
    assert len(runs) == 10


def test_a_failing_example_is_reported_and_nothing_else() -> None:
    @QUIET
    @expect_events("never")
    @given(st.integers())
    def check(number: int) -> None:
        if number > 100:
            raise LookupError(number)

    with pytest.raises(LookupError) as caught:
        check()
    assert caught.value.args == (101,)  # shrunk


def test_rejected_examples_do_not_count() -> None:
    @QUIET
    @expect_events("odd")
    @given(st.integers())
    def check(number: int) -> None:
        if number % 2:
            event("odd")
        assume(number % 2 == 0)

    with pytest.raises(AssertionError, match="'odd' did not happen"):
        check()


@pytest.mark.parametrize(
    "chosen", [settings(QUIET, phases=[Phase.explicit, Phase.reuse]), settings(QUIET, max_examples=5)]
)
def test_nothing_is_expected_without_enough_examples(chosen: settings) -> None:
    @chosen
    @example(3)
    @expect_events("never")
    @given(st.integers())
    def check(_number: int) -> None:
        pass

    check()


def test_the_least_number_of_examples_can_be_chosen() -> None:
    @settings(QUIET, max_examples=5)
    @expect_events("never", min_examples=5)
    @given(st.integers())
    def check(_number: int) -> None:
        pass

    with pytest.raises(AssertionError, match="never"):
        check()


def test_decorators_above_and_below_are_in_force() -> None:
    numbers = []

    @seed(1)
    @example(-77)
    @settings(QUIET, max_examples=12)
    @expect_events("any")
    @example(-78)
    @given(st.integers(0, 5))
    def check(number: int) -> None:
        numbers.append(number)
        event("any")

    check()
    assert {-77, -78} <= set(numbers)
    assert len(numbers) <= 14


@QUIET
@expect_events("one", "two")
@given(st.integers(1, 2))
async def test_async_properties_are_counted(number: int) -> None:
    event("one" if number == 1 else "two")


class TestMethods:
    @pytest.mark.parametrize("step", [1, 2])
    @QUIET
    @expect_events("positive")
    @given(number=st.integers(1, 9))
    def test_of_a_class_with_parameters_are_counted(self, step: int, number: int) -> None:
        assert isinstance(self, TestMethods)
        if number * step > 0:
            event("positive")


@pytest.mark.parametrize("run_async", [False, True])
def test_tools_may_note_events_wherever_they_run(run_async: bool) -> None:
    def look(number: int) -> str:
        """Look."""
        event(f"looked at {number}")
        if number == 2:
            raise ValueError(number)
        return "ok"

    rules = {"params": {"look": {"number": {"maximum": 3}}}}

    @QUIET
    @expect_events(
        "looked at 1",
        "tool ran",
        "tool ran: look",
        "tool failed: look",
        "tool denied",
        "tool denied: look",
        "tool unknown",
    )
    @given(st.sampled_from([("look", 1), ("look", 2), ("look", 4), ("find", 1)]))
    def check(call: tuple[str, int]) -> None:
        model = ScriptedModel([{"tool": call[0], "arguments": {"number": call[1]}}, "done"])
        agent = Agent("a", "b", model=model, tools=[look])
        if run_async:
            import anyio

            anyio.run(agent.run_async, "hi", {"tool_rules": rules})
        else:
            agent.run("hi", {"tool_rules": rules})

    check()


def test_a_state_machine_is_checked_in_a_block() -> None:
    class Machine(RuleBasedStateMachine):
        @rule(number=st.integers(0, 3))
        def add(self, number: int) -> None:
            event("added")

    with expect_events("added"):
        run_state_machine_as_test(Machine, settings=settings(QUIET, max_examples=3))
    with pytest.raises(AssertionError, match="'removed' did not happen"), expect_events("removed"):
        run_state_machine_as_test(Machine, settings=settings(QUIET, max_examples=3))


def test_a_block_that_fails_reports_its_own_error() -> None:
    with pytest.raises(LookupError), expect_events("never"):
        raise LookupError


def test_several_expectations_of_one_property_see_the_same_events() -> None:
    @QUIET
    @expect_events("first", "second")
    @expect_events("second")
    @given(st.integers(0, 9))
    def check(_number: int) -> None:
        event("first")
        with expect_events("third"):
            event("second")
            event("third")

    check()

    @QUIET
    @expect_events("never")
    @expect_events("first")
    @given(st.integers(0, 9))
    def vacuous(_number: int) -> None:
        event("first")

    with pytest.raises(AssertionError, match=r"'never' did not happen .* What happened: 'first' in "):
        vacuous()


def test_events_count_in_threads_that_the_property_starts() -> None:
    def note() -> None:
        event("noted")
        model = ScriptedModel([{"tool": "look"}, "Done."])
        Agent("a", "Help.", model=model, tools=[look]).run("Look.")

    def look() -> str:
        """Look."""
        return "seen"

    @QUIET
    @expect_events("noted", "tool ran: look")
    @given(st.integers(0, 1))
    def check(_number: int) -> None:
        thread = threading.Thread(target=note)
        thread.start()
        thread.join()

    check()


def test_events_of_work_that_outlives_its_example_count_for_the_one_that_runs() -> None:
    notes = queue.Queue[threading.Event | None]()
    context: list[contextvars.Context] = []

    def work() -> None:
        while (done := notes.get()) is not None:
            event("noted")
            done.set()

    @QUIET
    @expect_events("noted")
    @given(st.integers(0, 9))
    def check(_number: int) -> None:
        if not context:  # the worker has the context of the first example, which is rejected
            context.append(contextvars.copy_context())
            threading.Thread(target=context[0].run, args=(work,), daemon=True).start()
            assume(False)
        done = threading.Event()
        notes.put(done)
        assert done.wait(60)

    check()
    notes.put(None)


def test_one_example_is_not_called_examples() -> None:
    message = "'never' did not happen in the only example, so"
    with pytest.raises(AssertionError, match=message), expect_events("never"):
        event("other")


def test_a_wrong_use_is_an_error_with_advice() -> None:
    with pytest.raises(InvalidOptionError, match="put it above @given; 'check' is not a property test"):

        @expect_events("x")
        def check() -> None:
            pass

    with pytest.raises(InvalidOptionError, match="the name of an event is a str, not 3"):
        expect_events(3)  # type: ignore[arg-type]


def test_an_event_outside_of_a_test_has_no_effect() -> None:
    event("nothing")


PROPERTY = """
from hypothesis import given, settings, strategies as st
from kantan_agents.testing.properties import event, expect_events

@settings(max_examples=20)
@expect_events("even", "odd")
@given(st.integers())
def test_numbers(number):
    event("odd" if number % 2 else "even")

@settings(max_examples=20)
@expect_events("huge")
@given(st.integers(0, 5))
def test_vacuous(number):
    event("small")
"""


@pytest.mark.parametrize("distributes", [False, True], ids=["one process", "xdist"])
def test_pytest_shows_the_events_and_fails_the_vacuous_property(
    distributes: bool, tmp_path: Path, preloaded: Preloaded
) -> None:
    (tmp_path / "test_numbers.py").write_text(PROPERTY, encoding="utf-8")
    workers = on_two_workers(preloaded, tmp_path) if distributes else []
    command = ["-m", "pytest", "-p", "no:cacheprovider", "--hypothesis-show-statistics", *workers]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = preloaded.run(command, cwd=tmp_path, env=inherited)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "'huge' did not happen in any of" in done.stdout
    if not distributes:
        assert "%, even" in done.stdout
        assert "%, odd" in done.stdout
