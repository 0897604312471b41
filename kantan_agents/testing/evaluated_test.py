"""``evaluated``: an evaluation as a test."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs

from kantan_agents.agent import Agent
from kantan_agents.agent.running.portal import background_loop
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation import CaseResult, Dataset, Evaluation, evaluate
from kantan_agents.lab.evaluation.experiment.evaluating import Evaluators, evaluators_of
from kantan_agents.support.arguments import checked_number
from kantan_agents.support.extras import extra
from kantan_agents.testing.pass_rate import PassRate, is_failed_check, pass_rate, passes, shortfall
from kantan_agents.testing.pytest_plugin import PASS_RATE
from kantan_agents.traces.store import TraceStore

with extra("testing"):
    import pytest

_TestT = TypeVar("_TestT", bound=Callable[..., Any])
_MOST: Final = 10
_NO_SCORE: Final = "no case has a score; an evaluator that checks something must return True where it passes"


class UncertainPassRateWarning(UserWarning):
    """Fewer cases pass than a test requires, but the difference may be chance."""


def evaluated(
    dataset: Dataset | str | os.PathLike[str],
    *,
    min_pass: float = 0.9,
    evaluators: Evaluators = (),
    agent: Agent[Any] | None = None,
    threshold: float = 0.5,
    repeats: int = 1,
    concurrency: int = 8,
    store: TraceStore | str | os.PathLike[str] | None = None,
    **options: Any,
) -> Callable[[_TestT], _TestT]:
    """Turn an evaluation into a test: enough cases of a dataset must pass.

        @evaluated("tests/refunds.jsonl", min_pass=0.9, evaluators=[exact()])
        def test_refunds():
            return support_agent

    The function returns the agent; it may be async and may use fixtures. Each case is run and scored. The
    fraction of cases that pass, with its 95 % interval, determines the result:

    - The test passes if the fraction is at least ``min_pass``.
    - It fails if even the upper bound of the interval is below ``min_pass``. So one unlucky case does not
      fail it: an agent that is just good enough fails in at most 1 of 40 sessions.
    - In between it passes with an ``UncertainPassRateWarning``, which states how many more cases are
      needed for certainty.

    With ``min_pass=1.0`` every run of every case must pass. A run passes if it finishes and each of its
    scores is at least ``threshold``. Repeats of a case are averaged, and the interval allows for cases of one
    conversation or with the same content.

    An evaluator may use ``assert`` and end with ``return True``: if an assertion fails, the case does not
    pass. Any other error of an evaluator fails the test, because it is unknown whether the case passes. A
    case is omitted only if its evaluators return None, which means that they do not apply.

    A failed test lists the cases that fail with their comments and trace ids. The terminal summary and the
    JUnit file have the pass rate of every such test.

    Args:
        dataset: The cases, or the path of their file, relative to pytest's root directory.
        min_pass: The fraction that must pass, above 0 and up to 1.
        evaluators: As for ``evaluate``. Higher scores must be better: give ``latency`` a limit.
        agent: The agent, if the function returns None.
        threshold: The lowest score that passes.
        repeats: How often each case is run.
        concurrency: Number of runs at the same time.
        store: The trace database, or its path, relative to the root directory; each session adds an
            evaluation. By default it is in pytest's temporary directory, which stores the last three
            sessions.
        **options: Other options of ``evaluate``, such as ``context``, ``max_tokens`` or ``run_config``.

    Raises:
        InvalidOptionError: E75, ``min_pass`` or ``threshold`` is out of range, or lower scores of an
            evaluator are better.
    """
    if not 0 < checked_number("min_pass", min_pass) <= 1:
        raise InvalidOptionError(option="min_pass", reason=f"must be above 0 and up to 1, not {min_pass}")
    asked = evaluators_of(evaluators)
    for one in asked:
        if one.better == "lower":
            reason = f"of {one.name!r} lower is better; give it a limit, such as latency(most=2.0)"
            raise InvalidOptionError(option="evaluators", reason=reason)
    check = _Check(min_pass, checked_number("threshold", threshold), bool(asked))
    given = {"repeats": repeats, "concurrency": concurrency, **options}

    def decorated(function: _TestT) -> _TestT:
        parameters = inspect.signature(function).parameters
        wants_request = "request" in parameters

        @functools.wraps(function)
        def test(*arguments: Any, **fixtures: Any) -> None:
            request = fixtures["request"] if wants_request else fixtures.pop("request")
            tested = _agent(function(*arguments, **fixtures), agent)
            root = request.config.rootpath
            cases = dataset if isinstance(dataset, Dataset) else _loaded(dataset, root)
            place, name = _database(store, request)
            evaluation = evaluate(tested, cases, asked, name=name, store=place, **given)
            check(evaluation, request.node, function)

        # pytest reads the required fixtures from the signature.
        own = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY)
        needed = [*parameters.values(), *([] if wants_request else [own])]
        test.__signature__ = inspect.Signature(needed)  # type: ignore[attr-defined]
        return test  # type: ignore[return-value]  # only pytest calls it

    return decorated


@attrs.frozen
class _Check:
    """For its fields, see ``evaluated``."""

    min_pass: float
    threshold: float
    is_scored: bool

    def __call__(self, evaluation: Evaluation, node: Any, function: Any) -> None:
        if evaluation.stopped is not None:
            raise evaluation.stopped
        results = evaluation.results
        found = pass_rate(results, min_pass=self.min_pass, threshold=self.threshold, is_scored=self.is_scored)
        unknown = [*_failed_scores(results)]
        if found is None:
            pytest.fail("\n".join([_NO_SCORE, *unknown]), pytrace=False)
        node.user_properties.append((PASS_RATE, found.text))
        if unknown or found.verdict == "failed":
            lines = [*unknown, found.text, *self._failing(results), _hint(evaluation)]
            pytest.fail("\n".join(lines), pytrace=False)
        if found.verdict == "uncertain":
            code = inspect.unwrap(function).__code__
            warning = UncertainPassRateWarning(_uncertain(found))
            warnings.warn_explicit(warning, UncertainPassRateWarning, code.co_filename, code.co_firstlineno)

    def _failing(self, results: tuple[CaseResult, ...]) -> list[str]:
        failing: dict[str, list[CaseResult]] = {}
        for one in results:
            if passes(one, self.threshold, is_scored=self.is_scored) is False:
                failing.setdefault(one.case_id, []).append(one)
        repeats = 1 + max(one.repeat for one in results)
        lines = []
        for runs in [*failing.values()][:_MOST]:
            count = f" in {len(runs)} of {repeats} runs" if repeats > 1 else ""
            lines.append(f"  {runs[0].case_id}{count}: {_problems(runs[0], self.threshold)}")
        return [*lines, f"  and {len(failing) - _MOST} more"] if len(failing) > _MOST else lines


def _agent(returned: Any, agent: Agent[Any] | None) -> Agent[Any]:
    if inspect.isawaitable(returned):
        awaited = returned
        # The loop of the runs, as clients of an agent may belong to one loop.
        returned = background_loop.run(lambda: awaited)
    found = agent if returned is None else returned
    if not isinstance(found, Agent):
        reason = f"the test must return an Agent, or get one as agent=..., not {type(found).__name__}"
        raise InvalidOptionError(option="agent", reason=reason)
    return found


def _loaded(dataset: str | os.PathLike[str], root: Path) -> Any:
    # A HeldOutDataset is passed on to `evaluate`, which rejects it and states what to do.
    return Dataset.load(root / dataset) if isinstance(dataset, (str, os.PathLike)) else dataset


def _database(store: Any, request: Any) -> tuple[TraceStore | Path, str]:
    """The name is one that no earlier session has used."""
    name = str(request.node.nodeid)
    if store is None:
        directory = request.getfixturevalue("tmp_path_factory").mktemp("evaluated")
        return directory / "traces.sqlite3", name
    now = datetime.now(timezone.utc).isoformat(timespec="microseconds")
    place = store if isinstance(store, TraceStore) else request.config.rootpath / store
    return place, f"{name} {now}"


def _problems(result: CaseResult, threshold: float) -> str:
    parts = [result.error] if result.error is not None else []
    for metric, score in result.scores.items():
        problem = shortfall(score, threshold)
        if problem is not None:
            parts.append(f"{metric} {problem}")
    return f"{'; '.join(parts)}{_trace_note(result)}"


def _failed_scores(results: tuple[CaseResult, ...]) -> Iterator[str]:
    errors = [
        f"  {one.case_id}: {metric} failed, {score.error}{_trace_note(one)}"
        for one in results
        for metric, score in one.scores.items()
        if score.error is not None and not is_failed_check(score)
    ]
    if errors:
        count = "1 score has" if len(errors) == 1 else f"{len(errors)} scores have"
        yield f"{count} failed, so nobody knows whether these cases pass:"
    yield from errors[:_MOST]
    if len(errors) > _MOST:
        yield f"  and {len(errors) - _MOST} more"


def _uncertain(found: PassRate) -> str:
    count = found.more_cases
    cases = "more than 100,000" if count is None else f"about {count:,}"
    return f"{found.text}; that may be chance: {cases} more cases with this rate would fail the test"


def _trace_note(result: CaseResult) -> str:
    return "" if result.trace_id is None else f" ({result.trace_id})"


def _hint(evaluation: Evaluation) -> str:
    return f"Look at one: kantan-agents traces show ID --db {evaluation.path}"
