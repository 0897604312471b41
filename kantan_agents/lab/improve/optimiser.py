"""The adapter to GEPA, which runs in a thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

import anyio.from_thread

from kantan_agents.lab.evaluation.dataset import Case
from kantan_agents.lab.improve.rated import Rated
from kantan_agents.support.extras import extra

_T = TypeVar("_T")

COMPONENT: Final = "prompt"
"""The only component to optimize. Tool rules never are."""


class SearchEnded(BaseException):
    """Stops GEPA from inside of a call."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class SearchSteps(Protocol):
    """The steps that GEPA requests."""

    async def evaluate(self, text: str, cases: Sequence[Case]) -> Sequence[Rated]:
        """Return the scores of a version on some cases."""
        ...

    async def propose(self, text: str, rated: Sequence[Rated]) -> str | None:
        """Return a new version based on this one; None if there is none."""
        ...

    def is_over(self, rounds: int) -> bool:
        """Return whether the search stops after this many rounds."""
        ...


def check_installed() -> None:
    """Raise E124 if GEPA cannot be imported."""
    with extra("improve"):
        from gepa.api import optimize
    del optimize


def optimise(
    steps: SearchSteps,
    old: str,
    train: Sequence[Case],
    validation: Sequence[Case],
    *,
    seed: int,
    sample: int,
    perfect: float,
) -> None:
    """Let GEPA search, in a worker thread of anyio.

    GEPA stores no state in a file: it is a pickle, and the journal makes it needless.
    """
    from gepa.api import optimize

    adapter: Any = _Adapter(steps)

    def is_over(gepa_state: Any) -> bool:
        return steps.is_over(gepa_state.i + 1)

    optimize(
        seed_candidate={COMPONENT: old},
        trainset=list(train),
        valset=list(validation),
        adapter=adapter,
        reflection_minibatch_size=min(sample, len(train)),
        perfect_score=perfect,
        skip_perfect_score=True,
        stop_callbacks=[is_over],
        logger=_Silent(),
        track_best_outputs=False,
        seed=seed,
        run_dir=None,
    )


class _Silent:
    """GEPA's log: the journal has everything."""

    def log(self, message: str) -> None:
        """Do nothing."""


class _Adapter:
    """GEPA's view of the agent."""

    def __init__(self, steps: SearchSteps) -> None:
        self._steps = steps
        self._parent: Sequence[Rated] = ()

    def evaluate(self, batch: list[Case], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        """Run a candidate on a batch."""
        from gepa.core.adapter import EvaluationBatch

        rated = _ask(self._steps.evaluate, candidate[COMPONENT], batch)
        return EvaluationBatch(
            outputs=[None] * len(rated),
            scores=[one.value for one in rated],
            trajectories=list(rated) if capture_traces else None,
        )

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Any, components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Store the runs for the next proposal."""
        del candidate
        self._parent = tuple(eval_batch.trajectories or ())
        records = [{"Feedback": "\n".join(one.feedback)} for one in self._parent]
        return dict.fromkeys(components_to_update, records)

    def propose_new_texts(
        self,
        candidate: dict[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: list[str],
    ) -> dict[str, str]:
        """Return a new prompt; nothing if the reflection model gave none."""
        del reflective_dataset, components_to_update
        text = _ask(self._steps.propose, candidate[COMPONENT], self._parent)
        return {} if text is None else {COMPONENT: text}


def _ask(function: Callable[..., Coroutine[Any, Any, _T]], *arguments: Any) -> _T:
    """Await a step on the event loop."""
    try:
        return anyio.from_thread.run(function, *arguments)
    except Exception as error:
        raise SearchEnded(error) from error
