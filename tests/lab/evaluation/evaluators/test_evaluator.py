"""``Evaluator`` and ``evaluator``: functions as evaluators, their versions, and what they may return."""

from __future__ import annotations

import functools
import linecache
import re
import threading
from collections.abc import Callable
from decimal import Decimal
from importlib import import_module
from typing import Any

import anyio
import anyio.to_thread
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab import Evaluator, FinishedCase, Score, evaluator
from kantan_agents.lab.evaluation.evaluators import as_evaluator
from kantan_agents.lab.evaluation.evaluators.coerce import scores_from
from tests.lab.evaluation.values import finished


def returning(value: Any) -> Evaluator:
    return evaluator(lambda _finished: value, name="m", version="1")


async def test_a_decorated_function_is_an_evaluator_with_its_name() -> None:
    @evaluator
    def polite(finished: FinishedCase) -> bool:
        return "please" in finished.text

    @evaluator(name="short", better="lower", source="model", on_failure=True)
    async def length(finished: FinishedCase) -> int:
        return len(finished.text)

    assert await polite.score(finished("please")) == {"polite": Score(1.0)}
    assert await length.score(finished("abc")) == {"short": Score(3.0, source="model")}
    assert (polite.name, polite.better, polite.source, polite.on_failure) == (
        "polite",
        "higher",
        "code",
        False,
    )
    assert (length.name, length.better, length.source, length.on_failure) == ("short", "lower", "model", True)
    assert as_evaluator(polite) is polite
    assert as_evaluator(polite.function) == polite


async def test_functions_run_on_the_event_loop_unless_a_thread_is_wanted() -> None:
    def here(_finished: FinishedCase) -> bool:
        return threading.current_thread() is threading.main_thread()

    async def later(finished: FinishedCase) -> bool:
        return here(finished)

    class Later:
        async def __call__(self, finished: FinishedCase) -> bool:
            return here(finished)

    functions: list[Any] = [here, later, functools.partial(later), Later(), lambda finished: later(finished)]  # noqa: PLW0108
    for function in functions:
        assert await evaluator(function, name="m", version="1").score(finished()) == {"m": Score(1.0)}
    assert await evaluator(here, in_thread=True).score(finished()) == {"here": Score(0.0)}


async def test_a_cancellation_does_not_wait_for_a_thread() -> None:
    started, release = threading.Event(), threading.Event()

    def slow(_finished: FinishedCase) -> None:
        started.set()
        release.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(evaluator(slow, in_thread=True).score, finished())
        await anyio.to_thread.run_sync(started.wait)
        group.cancel_scope.cancel()
    release.set()


async def test_a_function_that_blocks_the_event_loop_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    module = import_module(Evaluator.__module__)  # the package has a function of the same name
    monkeypatch.setattr(module, "_SLOW", -1)
    blocking = evaluator(lambda _finished: 1, name="blocking", version="1")
    for _ in range(2):
        assert await blocking.score(finished()) == {"blocking": Score(1.0)}
    assert [vars(record)["evaluator"] for record in caplog.records] == ["blocking"]


VALUES: list[tuple[Any, dict[str, Score]]] = [
    (True, {"m": Score(1.0)}),
    (False, {"m": Score(0.0)}),
    (3, {"m": Score(3.0)}),
    (-0.5, {"m": Score(-0.5)}),
    (np.float32(0.5), {"m": Score(0.5)}),
    (np.int64(2), {"m": Score(2.0)}),
    (np.bool_(True), {"m": Score(1.0)}),
    (None, {}),
    ({}, {}),
    (Score(1, label="good", comment="c", source="person"), {"m": Score(1.0, "good", "c", "person")}),
    (Score(True), {"m": Score(1.0)}),
    ({"a": True, "b": Score(0.5), "c": None}, {"m.a": Score(1.0), "m.b": Score(0.5)}),
]


@pytest.mark.parametrize(("value", "scores"), VALUES)
async def test_what_a_function_returns_becomes_scores(value: Any, scores: dict[str, Score]) -> None:
    given = await returning(value).score(finished())
    assert given == scores
    assert all(type(score.value) is float for score in given.values())


INVALID: list[tuple[Any, str]] = [
    (float("nan"), "nan is not a finite number"),
    (float("-inf"), "-inf is not a finite number"),
    (10**400, "is not a finite number"),
    ("good", r"a label needs a value: return Score\(value, label=...\)"),
    ([1], r"\[1\] is not a score: return a bool, a number, a Score, None, or a dict of these"),
    (Decimal(1), "is not a score"),
    (1j, "is not a score"),
    (np.array([1.0, 2.0]), "is not a score"),
    (Score(float("nan")), "nan is not a finite number"),
    (Score(None), "a label needs a value"),
    (Score(None, label="good"), "a label needs a value"),
    (Score(1.0, label=5), "the label of a score must be a text, not 5"),  # type: ignore[arg-type]
    (Score(1.0, source="me"), "the source of a score must be code, model or person, not 'me'"),  # type: ignore[arg-type]
    ({"a": {"b": 1}}, "a dict in a dict has no meaning"),
]


@pytest.mark.parametrize(("value", "reason"), INVALID, ids=lambda one: str(one)[:30])
async def test_what_is_not_a_score_is_a_failed_score_with_the_reason(value: Any, reason: str) -> None:
    (score,) = (await returning(value).score(finished())).values()
    assert score.value is None
    assert score.error is not None
    assert re.match(f"InvalidScore: .*{reason}", score.error)


async def test_a_failed_metric_does_not_take_the_others_with_it() -> None:
    scores = await returning({"a": float("nan"), 5: 1, "b": 1}).score(finished())
    assert {name: score.value for name, score in scores.items()} == {"m.a": None, "m": None, "m.b": 1.0}
    assert "a metric must have a name that is a text, not 5" in str(scores["m"].error)


async def test_a_score_that_says_that_it_has_failed_has_no_value() -> None:
    assert await returning(Score(0.5, error="no")).score(finished()) == {"m": Score(None, error="no")}


_ANYTHING = st.floats() | st.integers() | st.text() | st.binary() | st.complex_numbers() | st.builds(object)


@given(
    st.recursive(_ANYTHING, lambda inner: st.lists(inner) | st.dictionaries(_ANYTHING, inner), max_leaves=5)
)
def test_any_value_gives_only_finite_or_failed_scores(value: Any) -> None:
    for score in scores_from("m", value, "code").values():
        assert (score.value is None) == (score.error is not None)
        assert score.value is None or abs(score.value) < float("inf")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("total"), "KeyError: 'total'"),
        (RuntimeError(), "RuntimeError"),
        (Unspeakable(), "Unspeakable"),
    ],
)
async def test_an_error_is_a_failed_score_and_never_a_zero(error: Exception, text: str) -> None:
    def sync(_finished: FinishedCase) -> None:
        raise error

    async def later(_finished: FinishedCase) -> None:
        raise error

    for function in (sync, later):
        scores = await evaluator(function, name="m", source="model").score(finished())
        assert scores == {"m": Score(None, error=text, source="model")}


async def test_a_cancellation_is_passed_on() -> None:
    async def forever(_finished: FinishedCase) -> None:
        started.set()
        await anyio.sleep_forever()

    started = anyio.Event()
    returned = False
    async with anyio.create_task_group() as group:

        async def ask() -> None:
            nonlocal returned
            await evaluator(forever).score(finished())
            returned = True

        group.start_soon(ask)
        await started.wait()
        group.cancel_scope.cancel()
    assert not returned


async def test_failed_runs_are_only_given_to_evaluators_that_want_them() -> None:
    failed = finished(None, error="E1")
    assert await returning(1).score(failed) == {}
    wanting = evaluator(lambda finished: finished.error == "E1", name="m", version="1", on_failure=True)
    assert await wanting.score(failed) == {"m": Score(1.0)}


# --- versions -----------------------------------------------------------------------------------------------


def at_least(limit: Any, default: Any = 1) -> Callable[[FinishedCase], bool]:
    def long(finished: FinishedCase, least: Any = default) -> bool:
        return bool(len(finished.text) >= limit + least)

    return long


def test_the_version_follows_source_defaults_and_the_variables_around_the_function() -> None:
    version = evaluator(at_least(3)).version
    assert len(version) == 16
    assert version == evaluator(at_least(3)).version
    others = [at_least(4), at_least(3, 2), at_least(3.0), at_least([3]), lambda finished: True]
    assert len({version, *(evaluator(other, name="long").version for other in others)}) == 6


def test_variables_that_are_not_data_do_not_matter() -> None:
    assert evaluator(at_least(object())).version == evaluator(at_least(object())).version


class Checks:
    def polite(self, finished: FinishedCase) -> bool:
        return "please" in finished.text


def test_a_method_has_a_version_too() -> None:
    assert evaluator(Checks().polite).version == evaluator(Checks().polite).version
    assert evaluator(Checks().polite).name == "polite"


def test_a_function_without_a_source_needs_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, Any] = {}
    # As in ``python -c`` since 3.13. The program is not the source of what it passes to ``exec``.
    program = ["def from_a_text(finished): return 2\n"]
    monkeypatch.setitem(linecache.cache, "<string>", (len(program[0]), None, program, "<string>"))
    exec("def from_a_text(finished): return 1", made)
    for function in (made["from_a_text"], functools.partial(at_least, 1)):
        with pytest.raises(InvalidOptionError, match="the source of 'm' is not available, so give a version"):
            evaluator(function, name="m")
        assert evaluator(function, name="m", version="2").version == "2"


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"function": 5}, "evaluator"),
        ({"function": int}, "evaluator"),
        ({"function": lambda: 1}, "evaluator"),
        ({"function": lambda one, two: 1}, "evaluator"),
        ({"function": lambda finished: 1}, "name"),
        ({"name": ""}, "name"),
        ({"name": 5}, "name"),
        ({"version": " "}, "version"),
        ({"better": "more"}, "better"),
        ({"better": ["higher"]}, "better"),
        ({"source": "me"}, "source"),
        ({"on_failure": "yes"}, "on_failure"),
        ({"in_thread": 1}, "in_thread"),
    ],
)
def test_an_invalid_option_is_an_error_that_names_it(options: dict[str, Any], option: str) -> None:
    with pytest.raises(InvalidOptionError) as raised:
        evaluator(**{"function": at_least(1), **options})
    assert raised.value.option == option
