"""``PromptSearch``: the candidates of a search."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import anyio
import attrs
from anyio.to_thread import run_sync

from kantan_agents.lab.evaluation.dataset import Case
from kantan_agents.lab.improve.arguments import SearchOptions
from kantan_agents.lab.improve.budget import BudgetUsedUpError
from kantan_agents.lab.improve.candidate import Candidate
from kantan_agents.lab.improve.limits import NOT_UNICODE, CandidateLimits
from kantan_agents.lab.improve.optimiser import SearchEnded, optimise
from kantan_agents.lab.improve.parts import Parts
from kantan_agents.lab.improve.rated import Rated, mean
from kantan_agents.lab.improve.rating import Rater
from kantan_agents.lab.improve.reflection import Proposal, Reflection, check_reflection, question_of
from kantan_agents.support.waiting import wait_for_end

_T = TypeVar("_T")


@attrs.define
class _Entry:
    """A candidate during the search."""

    candidate: Candidate
    rated: dict[str, Rated] = attrs.field(factory=dict)


class PromptSearch:
    """Searches for better versions of a prompt; never reads the held-out part.

    ``begin``, called before each step, raises ``BudgetUsedUpError`` if the held-out test could not be paid.
    """

    def __init__(
        self,
        parts: Parts,
        limits: CandidateLimits,
        rater: Rater,
        reflection: Reflection,
        options: SearchOptions,
        begin: Callable[[], None],
        done: Callable[[], None],
        *,
        withholds: bool,
    ) -> None:
        self._withholds = withholds
        self._parts = parts
        self._limits = limits
        self._rater = rater
        self._reflection = reflection
        self._options = options
        self._begin = begin
        self._done = done
        self._validation = {case.id for case in parts.validation}
        self._cases = {case.id: case for case in (*parts.train, *parts.validation)}
        old = limits.old.text
        self._entries = [_Entry(Candidate(0, None, old, status="old"))]
        self._by_text = {old: 0}
        self._refused: list[tuple[str, str]] = []
        self.round = 0
        self.is_out_of_budget = False
        self.proposals: list[Proposal] = []
        self._step: anyio.CancelScope | None = None
        self._is_cancelled = False

    @property
    def old(self) -> Candidate:
        """The old version."""
        return self._entries[0].candidate

    @property
    def best(self) -> Candidate | None:
        """The earliest eligible candidate with the highest validation score above the old one."""
        if self.old.score is None:
            return None
        able = [
            one.candidate
            for one in self._entries[1:]
            if one.candidate.score is not None
            and one.candidate.reason is None
            and one.candidate.score > self.old.score
        ]
        return max(able, key=lambda one: (one.score or 0.0, -one.number)) if able else None

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All versions as proposed, the old one first."""
        return tuple(one.candidate for one in self._entries)

    def rated(self, number: int) -> dict[str, Rated]:
        """Return the runs of a version, by the id of the recorded run."""
        return dict(self._entries[number].rated)

    async def run(self) -> None:
        """Search until a limit is reached or a candidate is perfect.

        If canceled, it finishes the current step and waits for its thread.
        """
        # A separate task, because a cancellation by asyncio would abandon the thread.
        searching = asyncio.create_task(self._optimise())
        try:
            await asyncio.shield(searching)
        except asyncio.CancelledError:
            self._is_cancelled = True
            if self._step is not None:
                self._step.cancel()
            with suppress(asyncio.CancelledError):
                await wait_for_end(searching)
            if not searching.cancelled():
                searching.exception()  # retrieved, or asyncio would log it
            raise
        except SearchEnded as ended:
            if not isinstance(ended.error, BudgetUsedUpError):
                raise ended.error from None
            self.is_out_of_budget = True

    async def _optimise(self) -> None:
        options = self._options
        await run_sync(
            lambda: optimise(
                self,
                self._limits.old.text,
                self._parts.train,
                self._parts.validation,
                seed=options.seed,
                sample=options.sample,
                perfect=options.perfect,
            )
        )

    async def evaluate(self, text: str, cases: Sequence[Case]) -> Sequence[Rated]:
        """Return the scores on training cases, or on all validation cases."""
        return await self._stoppable(partial(self._evaluated, text, cases))

    async def propose(self, text: str, rated: Sequence[Rated]) -> str | None:
        """Return a new version; None for an invalid reply."""
        return await self._stoppable(partial(self._proposed, text, rated))

    async def _stoppable(self, step: Callable[[], Awaitable[_T]]) -> _T:
        """Await a step of the thread; raise if the search is canceled."""
        with anyio.CancelScope() as self._step:
            if not self._is_cancelled:
                return await step()
        raise RuntimeError("the search was cancelled")

    def is_over(self, rounds: int) -> bool:
        """Return whether the search stops after this many rounds."""
        best = self.best
        is_perfect = best is not None and best.score is not None and best.score >= self._options.perfect
        if rounds >= self._options.rounds or is_perfect:
            return True
        self.round = rounds + 1
        return False

    async def _evaluated(self, text: str, cases: Sequence[Case]) -> Sequence[Rated]:
        self._begin()
        number = self._by_text[text]
        entry = self._entries[number]
        if entry.candidate.status == "refused":
            reason = entry.candidate.reason or ""
            return [Rated(case.id, 0.0, "not run", (f"The version was refused: {reason}",)) for case in cases]
        is_validation = all(case.id in self._validation for case in cases)
        if number == 0 and not is_validation:
            # The old version's recorded answers show what to improve.
            rated = await self._rater.rate_recorded(cases)
        else:
            rated = await self._rater.rate(text, cases)
        entry.rated.update((one.case_id, one) for one in rated)
        if is_validation:
            self._validated(entry, rated)
        elif number and entry.candidate.sample is None:
            entry.candidate = attrs.evolve(entry.candidate, sample=mean([one.value for one in rated]))
        self._judge_limits(entry)
        self._done()
        return rated

    async def _proposed(self, text: str, rated: Sequence[Rated]) -> str | None:
        self._begin()
        parent = self._by_text[text]
        runs = [(self._cases[one.case_id], one) for one in rated]
        question = question_of(text, runs, self._limits, self._refused)
        known = [(case, one.withheld()) for case, one in runs] if self._withholds else runs
        key = question_of(text, known, self._limits, self._refused)
        proposal = await self._reflection.propose(len(self.proposals) + 1, question, key)
        self.proposals.append(proposal)
        check_reflection(self.proposals, has_ended=False)
        if proposal.text is None:
            return None
        earlier = self._by_text.get(proposal.text)
        if earlier is not None:
            self._refused.append((proposal.changes, f"it is version {earlier} of this search again"))
            return None
        problem = self._limits.problem(proposal.text)
        candidate = Candidate(
            len(self._entries),
            parent,
            proposal.text,
            proposal.changes,
            "rejected" if problem is None else "refused",
            problem,
            parent_sample=mean([one.value for one in rated]) if rated else None,
        )
        self._by_text[proposal.text] = candidate.number
        self._entries.append(_Entry(candidate))
        if problem is not None:
            self._refused.append((proposal.changes, problem))
        return proposal.text if problem != NOT_UNICODE else None

    def _validated(self, entry: _Entry, rated: Sequence[Rated]) -> None:
        ended = [one.tokens for one in rated if one.has_ended]
        entry.candidate = attrs.evolve(
            entry.candidate,
            score=mean([one.value for one in rated]),
            tokens=mean(ended) if ended else None,
            status="behind" if entry.candidate.number else "old",
        )

    def _judge_limits(self, entry: _Entry) -> None:
        if entry.candidate.number == 0:
            return
        reason = self._limits.obstacle(self._old_runs(), entry.rated)
        if reason is not None:
            entry.candidate = attrs.evolve(entry.candidate, status="not eligible", reason=reason)

    def _old_runs(self) -> dict[str, Rated]:
        return {key: one for key, one in self._entries[0].rated.items() if one.status != "recorded"}
