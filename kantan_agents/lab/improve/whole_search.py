"""``WholeSearch``: from the arguments of ``improve`` to its result."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import attrs
from agents.tracing.scope import Scope
from anyio.to_thread import run_sync

from kantan_agents.core.events import subscribe
from kantan_agents.core.prompt import Prompt, hash_text
from kantan_agents.errors import ImproveBudgetError, WorkingFolderError
from kantan_agents.lab.experiment.database import redacts
from kantan_agents.lab.experiment.record_too import recorded
from kantan_agents.lab.experiment.run_config import checked_config, withholds
from kantan_agents.lab.experiment.watching import notice
from kantan_agents.lab.improve.arguments import ImproveArguments, search_key
from kantan_agents.lab.improve.budget import BudgetUsedUpError, SearchSpending, check_budget, needed_for_test
from kantan_agents.lab.improve.candidate import Candidate
from kantan_agents.lab.improve.folder import Folder, hashes_of
from kantan_agents.lab.improve.improvement import Improvement, ImproveProgress, Step
from kantan_agents.lab.improve.journal import SearchJournal, open_journal, read_beginning
from kantan_agents.lab.improve.limits import CandidateLimits
from kantan_agents.lab.improve.openings import next_opening
from kantan_agents.lab.improve.optimiser import check_installed
from kantan_agents.lab.improve.parts import Parts, check_sizes, parts_of
from kantan_agents.lab.improve.rating import Rater, experiment_name
from kantan_agents.lab.improve.reflection import Reflection, check_reflection
from kantan_agents.lab.improve.results import contents_of, improvement_of
from kantan_agents.lab.improve.sealed_test import HeldOutResult, run_held_out_test
from kantan_agents.lab.improve.search import PromptSearch
from kantan_agents.lab.improve.target import ImproveTarget, find_target, next_version
from kantan_agents.lab.replay.cohort import Cohort
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.improve")


class WholeSearch:
    """One start of ``improve``."""

    def __init__(self, asked: ImproveArguments) -> None:
        self._asked = asked
        self._spending = SearchSpending(asked.limits)
        self._search: PromptSearch | None = None
        self._step: Step = "baseline"

    async def run(self) -> Improvement:
        """Search, test the winner and write the files."""
        asked = self._asked
        await run_sync(check_installed)
        target = await run_sync(find_target, asked.agent, asked.store, asked.prompt, asked.version)
        limits = CandidateLimits.of(target.old, asked.max_length, asked.max_cost_increase)
        folder = asked.folder(target.old.name)
        await run_sync(folder.prepare)
        async with _locked(folder):
            parts, journal = await self._begun(target, limits, folder)
            await run_sync(folder.check_files, journal.files)
            self._count_journal(journal)
            journal.forget_failures()
            journal.withholds = await _withholds(asked)
            async with _recorded_alone(asked):
                return await self._searched(target, limits, folder, parts, journal)

    async def _begun(
        self, target: ImproveTarget, limits: CandidateLimits, folder: Folder
    ) -> tuple[Parts, SearchJournal]:
        asked = self._asked
        key = await search_key(asked, target, limits)
        known = await run_sync(read_beginning, folder.journal, key)
        if known is None:
            cohort = await run_sync(_selected, asked, target.old)
        else:
            cohort = _known_cohort(asked, folder, known.cases)
        parts = await run_sync(
            parts_of,
            cohort,
            asked.agent.name,
            target.old,
            asked.runs.live,
            asked.runs.priced,
            asked.split,
        )
        if known is None:
            opening = await run_sync(next_opening, asked.store.path, parts.test_ids)
            check_sizes(parts, asked.split, opening.alpha)
            check_budget(asked, parts)
        else:
            parts = attrs.evolve(parts, skipped=known.skipped)
        cases = {case_id: source.trace_id for case_id, source in parts.sources.items()}
        return parts, await run_sync(open_journal, folder.journal, key, cases, parts.skipped)

    def _count_journal(self, journal: SearchJournal) -> None:
        """Count the usage of earlier starts."""
        for one in journal.rated.values():
            self._spending.count(one.tokens, one.cost if one.tokens else 0.0)
            self._spending.count(one.judge_tokens, one.judge_cost if one.judge_tokens else 0.0, "judge")
        for proposal in journal.proposals.values():
            self._spending.count(int(proposal["tokens"]), proposal["cost"], "reflection")
        for tokens, cost in journal.lost:
            self._spending.count(tokens, cost)

    async def _searched(
        self,
        target: ImproveTarget,
        limits: CandidateLimits,
        folder: Folder,
        parts: Parts,
        journal: SearchJournal,
    ) -> Improvement:
        asked, spending = self._asked, self._spending
        rater = Rater(asked, target, parts, journal, spending, self._report)
        reflection = Reflection(asked, limits, experiment_name(target.old), journal, spending)

        def begin() -> None:
            spending.set_apart(needed_for_test(asked, parts, spending))

        search = PromptSearch(
            parts,
            limits,
            rater,
            reflection,
            asked.search,
            begin,
            self._report,
            withholds=journal.withholds,
        )
        self._search = search
        await search.run()
        check_reflection(search.proposals, has_ended=True)
        best, tested, new = search.best, None, None
        if best is not None:
            name = asked.new_version or journal.names.get(hash_text(best.text))
            if name is None:
                taken = {*target.recorded_versions, asked.agent.instructions.version}
                name = next_version(target.old.version, taken)
                await journal.add_name(hash_text(best.text), name)
            new = attrs.evolve(target.old, version=name, text=best.text, id=None)
            tested = await self._tested(parts, limits, rater, best, new, journal.id)
        improvement = improvement_of(asked, target, parts, search, spending, folder, new, tested)
        contents = contents_of(improvement)
        await journal.add_files(hashes_of(contents))
        await run_sync(folder.write, contents)
        return improvement

    async def _tested(
        self, parts: Parts, limits: CandidateLimits, rater: Rater, best: Candidate, new: Prompt, search: str
    ) -> HeldOutResult:
        self._step = "test"
        self._spending.begin_test()
        self._report()
        asked = self._asked
        try:
            return await run_held_out_test(asked.store, parts, limits, rater, asked.judge, best, new, search)
        except BudgetUsedUpError as error:
            reason = (
                f"it does not suffice for the held-out test; {self._spending.tokens:,} tokens were used. "
                "Start it again with a higher limit, and it goes on"
            )
            raise ImproveBudgetError(reason=reason) from error

    def _report(self) -> None:
        progress, search = self._asked.progress, self._search
        if progress is None or search is None:
            return
        if self._step == "baseline" and search.old.score is not None:
            self._step = "search"
        best = search.best
        now = ImproveProgress(
            self._step,
            search.round,
            self._asked.search.rounds,
            search.old.score,
            None if best is None else best.score,
            self._spending.tokens,
            self._spending.cost if self._asked.runs.prices else None,
        )
        try:
            progress(now)
        except Exception as error:  # noqa: BLE001 - like an observer, it must not break the search
            _log.error("progress callback failed", error=repr(error))


def _known_cohort(asked: ImproveArguments, folder: Folder, cases: Mapping[str, str]) -> Cohort:
    """Return the cohort of an earlier start; more may match by now."""
    traces = tuple(dict.fromkeys(cases.values()))
    if asked.cohort is not None and not set(traces) <= set(asked.cohort.trace_ids):
        reason = (
            "it belongs to a search with another cohort; choose another folder with out=, or delete this one"
        )
        raise WorkingFolderError(path=str(folder.path), reason=reason)
    return Cohort(asked.store, traces)


async def _withholds(asked: ImproveArguments) -> bool:
    # The journal must not have content that the traces lack.
    return await withholds(checked_config(asked.runs.run_config), [asked.agent]) or redacts(asked.store.path)


def _selected(asked: ImproveArguments, old: Prompt) -> Cohort:
    if asked.cohort is not None:
        return asked.cohort
    return Cohort.select(
        asked.store, agent=asked.agent.name, prompt=old.name, version=old.version, **asked.selection
    )


@asynccontextmanager
async def _locked(folder: Folder) -> AsyncIterator[None]:
    lock = folder.locked()
    await run_sync(lock.__enter__)
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


@asynccontextmanager
async def _recorded_alone(asked: ImproveArguments) -> AsyncIterator[None]:
    """Record each run of the block in a separate trace, even inside a trace of the caller."""
    trace, span = Scope.set_current_trace(None), Scope.set_current_span(None)
    try:
        # Of all agents: judges and the reflection model are called too.
        async with recorded(asked.store.path):
            with subscribe(notice):
                yield
    finally:
        Scope.reset_current_span(span)
        Scope.reset_current_trace(trace)
