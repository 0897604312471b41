"""Events in property tests."""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from types import TracebackType
from typing import Any, TypeVar

import attrs
from agents.tool import default_tool_error_function
from typing_extensions import Self

from kantan_agents.core.events import Event, ToolCallDenied, ToolCallFinished, subscribe
from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.extras import extra

with extra("testing"):
    import hypothesis
    from hypothesis import Phase, currently_in_test_context, settings

__all__ = ["event", "expect_events"]

TestT = TypeVar("TestT", bound=Callable[..., Any])

_UNKNOWN_TOOL = "E21"
_ROUNDS = 3  # an event in every tenth example is missing in all rounds of 40 in 3 of a million tests
# The SDK's message to the model if a tool raises or rejects its arguments.
_FAILED = default_tool_error_function(None, ValueError("\0")).split("\0")[0]  # type: ignore[arg-type]


@attrs.define(eq=False)
class _Example:
    outer: _Example | None = None
    events: set[str] = attrs.field(factory=set)
    is_over: bool = False


@attrs.define
class _Counts:
    examples: int = 0
    events: Counter[str] = attrs.field(factory=Counter)
    settings: settings | None = None

    @property
    def is_repeated(self) -> bool:
        """The next examples would be the same."""
        return self.settings is None or self.settings.derandomize


_example: ContextVar[_Example | None] = ContextVar("kantan_agents_example", default=None)
_running: list[_Example] = []
"""The innermost examples, in all threads."""
_lock = Lock()


def _current() -> _Example | None:
    """Return the example that this code runs in.

    Threads do not know its context, and a task may outlive the example that it knows. They belong to the
    running example, if it is the only one.
    """
    example = _example.get()
    if example is not None and not example.is_over:
        return example
    with _lock:
        return _running[0] if len(_running) == 1 else None


def event(name: str) -> None:
    """Record an event in this example of a property test.

    ``expect_events`` counts it, and ``--hypothesis-show-statistics`` shows it. Unlike ``hypothesis.event``,
    it may be called on other threads, such as the threads of tools.

    Args:
        name: Name of the event.
    """
    example = _current()
    if example is not None:
        example.events.add(name)
    elif currently_in_test_context():
        hypothesis.event(name)


class expect_events:  # noqa: N801 - a decorator
    """Fail a property test if an event that it is about never happens.

    A property such as "no denied tool runs" holds trivially if no tool is ever denied. As a decorator, put it
    above ``@given``. After the last example, the test fails unless each of the named events has happened in
    at least one:

        @expect_events("tool ran", "tool denied")
        @given(tool_calls(RULES, tools=TOOLS))
        def test_no_call_pays_too_much(call): ...

    Events are recorded with ``event``. These are recorded in all runs of agents: ``"tool ran"``, ``"tool
    failed"`` (it raised, or did not accept its arguments), ``"tool denied"`` (by the rules) and ``"tool
    unknown"``. The first three also occur with the name of the tool: ``"tool ran: pay"``. A failing tool with
    its own ``failure_error_function`` counts as ran.

    If an example fails, only its error is reported. Examples that ``assume`` rejects do not count. If an
    event is missing, as many examples are generated again, at most twice, so that a rare event does not fail
    the test by chance; with ``derandomize=True``, the examples are always the same, and none are added.
    Nothing is expected if the settings do not generate examples, or fewer than ``min_examples``: such a
    profile is for a quick look. Each combination of the parameters of a test must have the events. Events on
    threads that an example starts count for it, unless several examples run at the same time. With ``pytest
    -n``, each test is checked in the process that runs it.

    As a context manager, it expects the events in the block, such as a ``run_state_machine_as_test``.

    Args:
        names: The expected events.
        min_examples: Events are expected only if ``max_examples`` of the settings is at least this.

    Raises:
        InvalidOptionError: E75, a name is not a str, or the decorated function is not a property test.
    """

    def __init__(self, *names: str, min_examples: int = 10) -> None:
        for name in names:
            if not isinstance(name, str):
                reason = f"the name of an event is a str, not {name!r}"
                raise InvalidOptionError(option="expect_events", reason=reason)
        self._names = names
        self._min_examples = min_examples
        self._blocks: list[Any] = []

    def __call__(self, test: TestT) -> TestT:
        """Decorate a property test."""
        handle = getattr(test, "hypothesis", None)
        if handle is None:
            reason = f"put it above @given; {getattr(test, '__name__', test)!r} is not a property test"
            raise InvalidOptionError(option="expect_events", reason=reason)
        running: list[_Counts] = []  # the innermost last
        handle.inner_test = _counted(handle.inner_test, running)

        @functools.wraps(test)
        def checked(*args: Any, **kwargs: Any) -> Any:
            # Decorators above this one, such as @settings and @example, have left attributes here.
            vars(test).update({key: value for key, value in vars(checked).items() if key != "__wrapped__"})
            running.append(_Counts())
            try:
                with subscribe(_observe):
                    for _ in range(_ROUNDS):
                        test(*args, **kwargs)
                        if not self._missing(running[-1]) or running[-1].is_repeated:
                            break
                self._check(running[-1])
            finally:
                running.pop()

        return checked  # type: ignore[return-value]

    def __enter__(self) -> Self:
        block = _one_example(_Counts())
        self._blocks.append((block, block.__enter__(), subscribe(_observe)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        block, counts, subscription = self._blocks.pop()
        subscription.cancel()
        block.__exit__(kind, error, traceback)
        if kind is None:
            self._check(counts)

    def _missing(self, counts: _Counts) -> list[str]:
        chosen = counts.settings
        if chosen is not None and (
            Phase.generate not in chosen.phases or chosen.max_examples < self._min_examples
        ):
            return []
        return [name for name in self._names if not counts.events[name]] if counts.examples else []

    def _check(self, counts: _Counts) -> None:
        missing = self._missing(counts)
        if missing:
            happened = ", ".join(f"{name!r} in {count}" for name, count in counts.events.most_common())
            where = "the only example" if counts.examples == 1 else f"any of {counts.examples} examples"
            raise AssertionError(
                f"{', '.join(map(repr, missing))} did not happen in {where}, so "
                f"this property says nothing about it. What happened: {happened or 'no event'}. Change the "
                f"strategy so that it happens, or do not expect it."
            )


def _counted(inner: Callable[..., Any], running: list[_Counts]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(inner):

        @functools.wraps(inner)
        async def one_async(*args: Any, **kwargs: Any) -> Any:
            with _one_example(running[-1]):
                return await inner(*args, **kwargs)

        return one_async

    @functools.wraps(inner)
    def one(*args: Any, **kwargs: Any) -> Any:
        with _one_example(running[-1]):
            return inner(*args, **kwargs)

    return one


@contextmanager
def _one_example(counts: _Counts) -> Iterator[_Counts]:
    outer = _example.get()
    if outer is not None and outer.is_over:
        outer = None
    example = _Example(outer)
    token = _example.set(example)
    _replace(outer, example)
    try:
        yield counts
    finally:
        example.is_over = True
        _replace(example, outer)
        _example.reset(token)
    # Not if it failed, or was rejected by `assume`.
    counts.examples += 1
    counts.events.update(example.events)
    if outer is not None:
        outer.events.update(example.events)
    if currently_in_test_context():
        counts.settings = settings.default
        for name in sorted(example.events):
            hypothesis.event(name)


def _replace(old: _Example | None, new: _Example | None) -> None:
    with _lock:
        if old in _running:
            _running.remove(old)
        if new is not None:
            _running.append(new)


def _observe(happened: Event) -> None:
    example = _current()
    if example is None:
        return
    if isinstance(happened, ToolCallDenied):
        unknown = happened.code == _UNKNOWN_TOOL
        names = ["tool unknown"] if unknown else ["tool denied", f"tool denied: {happened.tool}"]
    elif isinstance(happened, ToolCallFinished):
        is_failure = happened.outcome != "finished" or (happened.output or "").startswith(_FAILED)
        what = "tool failed" if is_failure else "tool ran"
        names = [what, f"{what}: {happened.tool}"]
    else:
        return
    example.events.update(names)
