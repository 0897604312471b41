"""Stages, and the rules for ``call_next``."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Protocol, TypeVar, cast

import attrs

from kantan_agents.core.events import StageEntered, StageLeft
from kantan_agents.core.events.emitter import Emitter, Stopwatch, outcome_of
from kantan_agents.core.pipeline.run import Run
from kantan_agents.errors import CallNextNotAwaitedError, ConcurrentCallNextError, NotAStageError
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.run")

Next = Callable[[Run], Awaitable[None]]
"""Runs the rest of the pipeline: ``await call_next(run)``."""

Chain = Callable[[Run], Coroutine[Any, Any, None]]


class Stage(Protocol):
    """``async def stage(run, call_next)``: a function, bound method or object with ``__call__``.

    Code before ``await call_next(run)`` runs before all later stages, code after it when they are done. A
    stage that does not call it skips all later stages. It may be awaited several times in sequence (a
    retry), never concurrently.
    """

    def __call__(self, run: Run, call_next: Next, /) -> Awaitable[None]:
        """Run code around the rest of the pipeline."""
        ...


@attrs.frozen
class NamedStage:
    """A stage with its name in the pipeline."""

    name: str
    stage: Stage

    @classmethod
    def of(cls, value: Stage | tuple[str, Stage]) -> NamedStage:
        """Name a stage by the pair, ``name``, ``__name__`` or its class."""
        if isinstance(value, tuple):
            try:
                name, stage = value
            except ValueError:
                raise NotAStageError(value=repr(value), reason="it is not a (name, stage) pair") from None
            if not isinstance(name, str) or not name:
                raise NotAStageError(value=repr(value), reason="its name is empty or not a str")
        else:
            name, stage = stage_name(value), value
        _check_callable(stage)
        return cls(name, stage)


def stage_name(stage: object) -> str:
    """Return a stage's own name."""
    for attribute in ("name", "__name__"):
        name = getattr(stage, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(stage).__name__


def _check_callable(stage: object) -> None:
    if isinstance(stage, type):
        raise NotAStageError(value=repr(stage), reason="it is a class; pass an instance")
    if not callable(stage):
        raise NotAStageError(value=repr(stage), reason="it is not callable")
    function = stage if inspect.isroutine(stage) else type(stage).__call__
    if inspect.isfunction(function) and not inspect.iscoroutinefunction(function):
        raise NotAStageError(value=repr(stage), reason="it is not async")
    try:
        inspect.signature(stage).bind(None, None)
    except TypeError as error:
        raise NotAStageError(value=repr(stage), reason=str(error)) from None
    except ValueError:
        return  # written in C: its signature cannot be read


def _is_observed(run: Run) -> bool:
    return run.events is not None and run.events.wants(StageEntered, StageLeft)


async def _observed(run: Run, name: str, stage: Stage, call_next: Next) -> None:
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
    """Rejects calls that would corrupt the run."""

    def __init__(self, name: str, following: Next) -> None:
        self._name = name
        self._next = following
        self._open = False
        self._before: tuple[int, Any] | None = None
        self._pending: Coroutine[Any, Any, None] | None = None
        self._task: asyncio.Task[Any] | None = None
        self._rejected: tuple[Run, Any, Any] | None = None

    def __call__(self, run: Run) -> Awaitable[None]:
        if self._open:
            raise ConcurrentCallNextError(stage=self._name)
        self._rejected = None
        if self._before is None:
            self._before = (run.mark(), run.result)
        else:
            # A retry: restore the state before the first call.
            mark, run.result = self._before
            run.roll_back(mark)
        self._open = True
        self._pending = self._forward(run)
        return self._pending

    async def _forward(self, run: Run) -> None:
        self._task = asyncio.current_task()
        mark, result = run.mark(), run.result
        try:
            await self._next(run)
        except BaseException:
            # A stage that handles the failure must see the state before the call.
            run.roll_back(mark)
            self._rejected = (run, run.result, result)
            run.result = result
            raise
        finally:
            self._open = False

    def give_back(self) -> None:
        """Restore the result of a failure that the stage passes on."""
        if self._rejected is not None:
            run, result, before = self._rejected
            if run.result is before:
                run.result = result

    @property
    def was_called(self) -> bool:
        return self._before is not None

    def abandon(self) -> bool:
        """Cancel a call that outlives its stage; return whether one did."""
        if not self._open:
            return False
        if self._task is None:
            if self._pending is not None:
                self._pending.close()
        elif self._task is not asyncio.current_task():
            self._task.cancel()
        return True


class _Relay:
    """Defers the call of a stage that calls ``call_next`` last until it has returned."""

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
    """Stages that call ``call_next`` last, run in sequence instead of nested.

    Nested frames would slow every resumption, and add 8 % to a waiting run's memory (``python -m benchmarks
    --only held_0``).
    """

    def __init__(self, stages: tuple[NamedStage, ...], following: Next) -> None:
        self._stages = stages
        self._following = following

    def preceded_by(self, named: NamedStage) -> _Steps:
        return _Steps((named, *self._stages), self._following)

    async def __call__(self, run: Run) -> None:
        for named in self._stages:
            relay = _Relay(named.name)
            if run.events is None or not _is_observed(run):
                await named.stage(run, relay)
            else:
                await _observed(run, named.name, named.stage, relay)
            if relay.run is None:
                return
            run = relay.run
        await self._following(run)


S = TypeVar("S", bound=Stage)


def calls_next_last(stage: S) -> S:
    """Mark a stage that only ends with ``await call_next(run)``."""
    # The function itself: `functools.wraps` copies attributes to wrappers.
    stage.calls_next_last = stage  # type: ignore[attr-defined]
    return stage


def link(named: NamedStage, following: Chain) -> Chain:
    """Run ``named`` around ``following``."""
    if getattr(named.stage, "calls_next_last", None) is named.stage:
        if isinstance(following, _Steps):
            return following.preceded_by(named)
        return _Steps((named,), following)
    name, stage = named.name, named.stage

    async def enter(run: Run) -> None:
        call_next = _CallNext(name, following)
        try:
            if not _is_observed(run):
                await stage(run, call_next)
            else:
                await _observed(run, name, stage, call_next)
        except BaseException:
            call_next.abandon()
            call_next.give_back()
            raise
        if call_next.abandon():
            raise CallNextNotAwaitedError(stage=name)
        if run.result is None and not call_next.was_called:
            # A stage may skip the rest, or have forgotten `await call_next(run)`.
            _log.warning(
                f"stage {name} ended the run without a result: it did not call call_next", run_id=run.id
            )

    return enter
