"""Functions with a version that score a run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Literal, overload

import attrs
from anyio.to_thread import run_sync

from kantan_agents.core.events.emitter import Stopwatch
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.evaluators.coerce import Scale, failed_score, scores_from
from kantan_agents.lab.evaluation.evaluators.versions import version_of_function
from kantan_agents.lab.evaluation.finished_case import FinishedCase
from kantan_agents.lab.evaluation.scores import Score, Source
from kantan_agents.support.arguments import checked_bool, checked_scale, shown
from kantan_agents.support.log import get_logger

Better = Literal["higher", "lower"]
EvaluatorFunction = Callable[[FinishedCase], Any]

_log = get_logger("kantan_agents.evaluation")
_warned: set[str] = set()

_SLOW: Final = 0.1
_ONE_OF: Final = {"better": ("higher", "lower"), "source": ("code", "model", "person")}


def _scale(given: Any) -> Scale:
    return None if given is None else checked_scale("scale", given)


@attrs.frozen
class Evaluator:
    """Scores the run of a case. ``evaluator`` creates one from a function.

    Attributes:
        name: The metric.
        version: Identifies its scores: scores of another version are not reused.
        function: Called with the ``FinishedCase``; see ``evaluator`` for its return values.
        better: Whether a higher or a lower score is better.
        source: Who gives the scores: code or a model.
        on_failure: Whether it scores failed runs too.
        in_thread: Whether a sync function runs in a worker thread.
        scale: The lowest and the highest score; a score outside has failed. None if any finite number is
            valid.

    Raises:
        InvalidOptionError: E75, an option has an invalid value.
    """

    name: str
    version: str
    function: EvaluatorFunction = attrs.field(repr=False, eq=False)
    better: Better = "higher"
    source: Source = "code"
    on_failure: bool = False
    in_thread: bool = False
    scale: Scale = attrs.field(default=None, converter=_scale)

    def __attrs_post_init__(self) -> None:
        for option, text in (("name", self.name), ("version", self.version)):
            if not isinstance(text, str) or not text.strip():
                raise InvalidOptionError(option=option, reason=f"must be a text, not {shown(text)}")
        for option, known in _ONE_OF.items():
            value = getattr(self, option)
            if value not in known:
                reason = f"must be one of {', '.join(known)}, not {shown(value)}"
                raise InvalidOptionError(option=option, reason=reason)
        checked_bool("on_failure", self.on_failure)
        checked_bool("in_thread", self.in_thread)

    async def score(self, finished: FinishedCase) -> Mapping[str, Score]:
        """Return the scores of a run by metric; none if the evaluator does not apply to it.

        An error of the function becomes a failed score. Cancellation propagates.

        Args:
            finished: The run.
        """
        if finished.error is not None and not self.on_failure:
            return {}
        try:
            returned = await self._call(finished)
        except Exception as error:  # noqa: BLE001 - any error of the function is its result
            return {self.name: failed_score(error, self.source)}
        return scores_from(self.name, returned, self.source, self.scale)

    async def _call(self, finished: FinishedCase) -> Any:
        if self.in_thread:
            returned = await run_sync(partial(self.function, finished), abandon_on_cancel=True)
        else:
            watch = Stopwatch()
            returned = self.function(finished)
            if watch.seconds > _SLOW:
                _warn(self.name, watch.seconds)
        return await returned if inspect.isawaitable(returned) else returned


def _warn(name: str, seconds: float) -> None:
    if name not in _warned:
        _warned.add(name)
        _log.warning("slow evaluator blocks the event loop", evaluator=name, seconds=round(seconds, 3))


@overload
def evaluator(
    function: EvaluatorFunction,
    *,
    name: str | None = None,
    version: str | None = None,
    better: Better = "higher",
    source: Source = "code",
    on_failure: bool = False,
    in_thread: bool = False,
    scale: tuple[float, float] | None = None,
) -> Evaluator: ...
@overload
def evaluator(
    function: None = None,
    *,
    name: str | None = None,
    version: str | None = None,
    better: Better = "higher",
    source: Source = "code",
    on_failure: bool = False,
    in_thread: bool = False,
    scale: tuple[float, float] | None = None,
) -> Callable[[EvaluatorFunction], Evaluator]: ...
def evaluator(
    function: EvaluatorFunction | None = None,
    *,
    name: str | None = None,
    version: str | None = None,
    better: Better = "higher",
    source: Source = "code",
    on_failure: bool = False,
    in_thread: bool = False,
    scale: tuple[float, float] | None = None,
) -> Evaluator | Callable[[EvaluatorFunction], Evaluator]:
    """Return an evaluator for a function; also a decorator, with and without arguments.

        @evaluator
        def polite(finished):
            return "please" in finished.text.lower()

    The function gets a ``FinishedCase`` and returns a bool (1.0 or 0.0), a number, a ``Score``, None if it
    does not apply, or a dict of these for several metrics, named ``"<name>.<key>"``. Other values, numbers
    that are not finite or not on the ``scale``, and errors are failed scores.

    Functions run on the event loop, because a thread takes longer than most comparisons. A sync function that
    waits or computes for long would block all other runs: use ``in_thread``, or make it async. A function
    that takes more than 0.1 s is logged.

    Args:
        function: The function, sync or async.
        name: Name of the metric; by default the name of the function.
        version: By default a hash of the function's source, its defaults, and the variables around it that
            are JSON data. Change ``version`` if functions that it calls change.
        better: Whether ``"higher"`` or ``"lower"`` is better.
        source: ``"model"`` if the function calls a model.
        on_failure: Whether it scores failed runs too.
        in_thread: Whether a sync function runs in a worker thread. Cancellation does not wait for it.
        scale: The lowest and the highest score, such as ``(0, 10)``.

    Raises:
        InvalidOptionError: E75, the function cannot be called with one argument, its source is not available
            and no ``version`` is given, or an option has an invalid value.
    """

    def decorated(given: EvaluatorFunction) -> Evaluator:
        _check_function(given)
        named = _name_of(given) if name is None else name
        versioned = version_of_function(given, named) if version is None else version
        return Evaluator(named, versioned, given, better, source, on_failure, in_thread, scale)

    return decorated if function is None else decorated(function)


def as_evaluator(given: Evaluator | EvaluatorFunction) -> Evaluator:
    """Return an evaluator unchanged, or an evaluator for a function.

    Raises:
        InvalidOptionError: E75, it is neither.
    """
    return given if isinstance(given, Evaluator) else evaluator(given)


def _check_function(function: Any) -> None:
    if not callable(function) or isinstance(function, type):
        raise InvalidOptionError(
            option="evaluator", reason=f"must be an Evaluator or a function, not {shown(function)}"
        )
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        reason = f"{shown(function)} must take one argument, the finished case: {error}"
        raise InvalidOptionError(option="evaluator", reason=reason) from error
    except ValueError:  # a function in C whose signature is unknown
        return


def _name_of(function: Any) -> str:
    name = getattr(function, "__name__", None)
    if isinstance(name, str) and name.isidentifier():
        return name
    raise InvalidOptionError(option="name", reason=f"give one for {shown(function)}, which has none")
