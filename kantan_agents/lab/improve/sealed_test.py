"""Tests the winner on the held-out cases."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from anyio.to_thread import run_sync

from kantan_agents.core.prompt import Prompt, hash_text
from kantan_agents.lab.evaluation import Case, Comparison, Evaluator, Score, VariantResults, compare
from kantan_agents.lab.improve.candidate import Candidate
from kantan_agents.lab.improve.limits import CandidateLimits
from kantan_agents.lab.improve.openings import Opening, open_held_out
from kantan_agents.lab.improve.parts import Parts
from kantan_agents.lab.improve.rated import Rated, result_of
from kantan_agents.lab.improve.rating import Rater
from kantan_agents.lab.improve.units import units_of_cases
from kantan_agents.traces.capture.canonical import content_hash
from kantan_agents.traces.store import TraceStore


@attrs.frozen
class HeldOutResult:
    """The old version (a) and the candidate (b), and why (b) is not the new version."""

    opening: Opening
    comparison: Comparison
    reason: str | None


async def run_held_out_test(
    store: TraceStore,
    parts: Parts,
    limits: CandidateLimits,
    rater: Rater,
    judge: Evaluator,
    candidate: Candidate,
    new: Prompt,
    search: str,
) -> HeldOutResult:
    """Open the held-out cases and compare the old version with a candidate on them."""
    old = limits.old
    key = content_hash([search, parts.test.hash, hash_text(old.text), hash_text(candidate.text)])
    opening = await run_sync(open_held_out, store.path, key, old.name, parts.test_ids)
    cases = parts.test.open(f"test of candidate {candidate.number} of the prompt {old.name!r}").cases
    before = await rater.rate(old.text, cases)
    after = await rater.rate(candidate.text, cases)
    compared = await run_sync(
        lambda: compare(
            _results(old.version, cases, before, judge),
            _results(new.version, cases, after, judge),
            metrics=judge.name,
            level=1 - opening.alpha,
        )
    )
    obstacle = limits.obstacle(_by_case(before), _by_case(after))
    verdict = compared[judge.name]
    reason = None
    if obstacle is not None:
        reason = f"in the held-out test, {obstacle}"
    elif verdict.verdict != "better":
        reason = f"the held-out test does not show that it is better: {verdict.text}"
    return HeldOutResult(opening, compared, reason)


def _by_case(rated: Sequence[Rated]) -> dict[str, Rated]:
    return {one.case_id: one for one in rated}


def _results(variant: str, cases: Sequence[Case], rated: Sequence[Rated], judge: Evaluator) -> VariantResults:
    units = units_of_cases(cases)
    # A run that failed or diverged scores 0: omitting it would make its version look better.
    results = [
        attrs.evolve(
            result_of(one, case, variant),
            conversation=units[case.id],
            scores={judge.name: _score(one, judge)},
            evaluators={judge.name: (judge.name, judge.version)},
        )
        for case, one in zip(cases, rated, strict=True)
    ]
    return VariantResults("improve", variant, tuple(results), {judge.name: judge.better})


def _score(rated: Rated, judge: Evaluator) -> Score:
    value = rated.value if rated.unscored is None else None
    return Score(value, comment=rated.comment, source=judge.source, error=rated.unscored)
