"""What a stage is, what it is called, and the rules for calling on."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Protocol, TypeVar, cast

import attrs

from kantan_agents.errors import CallNextNotAwaitedError, ConcurrentCallNextError, NotAStageError
from kantan_agents.events import StageEntered, StageLeft
from kantan_agents.events.emitter import Emitter, Stopwatch, outcome_of
from kantan_agents.pipeline.run import Run

Next = Callable[[Run], Awaitable[None]]
"""What a stage awaits to let the run go on: ``await call_next(run)``."""


class Stage(Protocol):
    """``async def stage(run, call_next)``: a function, a bound method or an object with ``__call__``.

    Before ``await call_next(run)`` is the way in, after it the way out. Not calling it at all ends the
    run there. It may be awaited several times one after another (a retry), never at the same time.
    """

    def __call__(self, run: Run, call_next: Next, /) -> Awaitable[None]:
        """Do something around the rest of the run."""
        ...


@attrs.frozen
class NamedStage:
    """A stage and the name by which a pipeline knows it."""

    name: str
    stage: Stage

    @classmethod
    def of(cls, value: Stage | tuple[str, Stage]) -> NamedStage:
        """Name a stage: by the pair's name, its ``name`` attribute, ``__name__`` or its class."""
        if isinstance(value, tuple):
            try:
                name, stage = value
            except ValueError:
                raise NotAStageError(value=repr(value), reason="it is no (name, stage)") from None
            if not isinstance(name, str) or not name:
                raise NotAStageError(value=repr(value), reason="its name is no str or empty")
        else:
            name, stage = stage_name(value), value
        _check_callable(stage)
        return cls(name, stage)


def stage_name(stage: object) -> str:
    """Return the name a stage has by itself."""
    for attribute in ("name", "__name__"):
        name = getattr(stage, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(stage).__name__


def _check_callable(stage: object) -> None:
    if isinstance(stage, type):
        raise NotAStageError(value=repr(stage), reason="this is a class, give an instance of it")
    if not callable(stage):
        raise NotAStageError(value=repr(stage), reason="it cannot be called")
    function = stage if inspect.isroutine(stage) else type(stage).__call__
    if inspect.isfunction(function) and not inspect.iscoroutinefunction(function):
        raise NotAStageError(value=repr(stage), reason="it is not async")
    try:
        inspect.signature(stage).bind(None, None)
    except TypeError as error:
        raise NotAStageError(value=repr(stage), reason=str(error)) from None
    except ValueError:
        return  # written in C: its signature cannot be read


async def _told(run: Run, name: str, stage: Stage, call_next: Next) -> None:
    """Run a stage and tell when it is entered and left."""
    events = cast("Emitter", run.events)
    watch = Stopwatch()
    error: BaseException | None = None
    try:
        await events.emit(StageEntered, stage=name)
        await stage(run, call_next)
    except BaseException as raised:
        error = raised
        raise
    finally:
        await events.emit_end(StageLeft, stage=name, seconds=watch.seconds, outcome=outcome_of(error))


class _CallNext:
    """The ``call_next`` of one stage in one run; refuses what would corrupt the run."""

    __slots__ = ("_before", "_name", "_next", "_open", "_pending", "_task")

    def __init__(self, name: str, following: Next) -> None:
        self._name = name
        self._next = following
        self._open = False
        self._before: tuple[int, Any] | None = None
        self._pending: Coroutine[Any, Any, None] | None = None
        self._task: asyncio.Task[Any] | None = None

    def __call__(self, run: Run) -> Awaitable[None]:
        if self._open:
            raise ConcurrentCallNextError(stage=self._name)
        if self._before is None:
            self._before = (run.mark(), run.result)
        else:
            # A stage that tries again: context and result as they were before its first call.
            mark, run.result = self._before
            run.roll_back(mark)
        self._open = True
        self._pending = self._forward(run)
        return self._pending

    async def _forward(self, run: Run) -> None:
        self._task = asyncio.current_task()
        mark = run.mark()
        try:
            await self._next(run)
        except BaseException:
            # A stage that handles the failure must find the context as it was before.
            run.roll_back(mark)
            raise
        finally:
            self._open = False

    def abandon(self) -> bool:
        """End what is still under way once the stage has ended; return whether there was anything."""
        if not self._open:
            return False
        if self._task is None:
            if self._pending is not None:
                self._pending.close()
        elif self._task is not asyncio.current_task():
            self._task.cancel()
        return True


class _Relay:
    """The ``call_next`` of a stage that calls it last: remembers the call, to be made afterwards."""

    __slots__ = ("_name", "run")

    def __init__(self, name: str) -> None:
        self._name = name
        self.run: Run | None = None

    def __call__(self, run: Run) -> Awaitable[None]:
        if self.run is not None:
            raise ConcurrentCallNextError(stage=self._name)
        self.run = run
        return self

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


class _Steps:
    """Stages that call on last, one after another instead of one inside the other.

    The order is the same; what it saves is that every resumption of the SDK's work passes through the
    frames of all stages around it.
    """

    __slots__ = ("_following", "_stages")

    def __init__(self, stages: tuple[NamedStage, ...], following: Next) -> None:
        self._stages = stages
        self._following = following

    def preceded_by(self, named: NamedStage) -> _Steps:
        return _Steps((named, *self._stages), self._following)

    async def __call__(self, run: Run) -> None:
        for named in self._stages:
            relay = _Relay(named.name)
            if run.events is None:
                await named.stage(run, relay)
            else:
                await _told(run, named.name, named.stage, relay)
            if relay.run is None:
                return
            run = relay.run
        await self._following(run)


S = TypeVar("S", bound=Stage)


def calls_next_last(stage: S) -> S:
    """Mark a stage function in which nothing follows its one ``await call_next(run)``."""
    # The mark is the function itself: `functools.wraps` copies it to a wrapper that may do otherwise.
    stage.calls_next_last = stage  # type: ignore[attr-defined]
    return stage


def link(named: NamedStage, following: Next) -> Next:
    """Return what runs ``named`` and, when it calls on, ``following``."""
    if getattr(named.stage, "calls_next_last", None) is named.stage:
        if isinstance(following, _Steps):
            return following.preceded_by(named)
        return _Steps((named,), following)
    name, stage = named.name, named.stage

    async def enter(run: Run) -> None:
        call_next = _CallNext(name, following)
        try:
            if run.events is None:
                await stage(run, call_next)
            else:
                await _told(run, name, stage, call_next)
        except BaseException:
            call_next.abandon()
            raise
        if call_next.abandon():
            raise CallNextNotAwaitedError(stage=name)

    return enter
