"""Splits the cases of a cohort by conversation into train, validation and held-out test."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import CohortTooSmallError, EmptyDatasetError, InvalidOptionError
from kantan_agents.lab.evaluation.dataset import Case, Dataset, HeldOutDataset
from kantan_agents.lab.evaluation.dataset.recorded_cases import cases_of_trace
from kantan_agents.lab.evaluation.statistics import fewest_cases
from kantan_agents.lab.experiment.identity import plain
from kantan_agents.lab.experiment.prices import Prices, UsageMetrics
from kantan_agents.lab.improve.openings import Opening
from kantan_agents.lab.improve.units import units_of_cases
from kantan_agents.lab.replay.cohort import (
    Cohort,
    Skipped,
    expected_amounts,
    obstacle,
    recorded_figures,
)
from kantan_agents.lab.replay.recording import Recording
from kantan_agents.support.ledger import Amounts
from kantan_agents.traces.capture import RunRecord
from kantan_agents.traces.capture.canonical import content_hash

SPLIT: Final = (0.4, 0.2, 0.4)
"""Train, validation and test. The test is large, because the verdict depends on it."""
# The same for every seed of the search, so that the same cases stay held out.
_SPLIT_SEED: Final = 0
_FEWEST_VALIDATION: Final = 2


@attrs.frozen
class RecordedSource:
    """A recorded run; ``case`` lacks its output, ``used`` includes inner runs."""

    case: Case
    record: RunRecord
    used: UsageMetrics

    @property
    def trace_id(self) -> str:
        """Id of the trace."""
        return str(self.case.metadata["trace_id"])


@attrs.frozen
class Parts:
    """The recorded runs in three parts."""

    sources: Mapping[str, RecordedSource]
    train: Sequence[Case]
    validation: Sequence[Case]
    test: HeldOutDataset
    skipped: Sequence[Skipped]

    def estimates(self, case_ids: Iterable[str]) -> Amounts:
        """Return the recorded usage of these cases; None where unknown."""
        listed = [expected_amounts(self.sources[case_id].used) for case_id in case_ids]
        amounts = {name: [one[name] for one in listed] for name in ("tokens", "cost")}
        return {
            name: None if None in each else sum(one or 0.0 for one in each) for name, each in amounts.items()
        }

    @property
    def test_ids(self) -> Sequence[str]:
        """Ids of the held-out cases; their content stays unread."""
        seen = {case.id for case in (*self.train, *self.validation)}
        return [case_id for case_id in self.sources if case_id not in seen]


def parts_of(
    cohort: Cohort,
    agent: str,
    old: Prompt,
    live: frozenset[str],
    prices: Prices,
    split: tuple[float, float, float],
) -> Parts:
    """Read and split a cohort; raise E121 without a usable run of the ``old`` version."""
    train, validation, test = _fractions(split)
    sources: list[RecordedSource] = []
    skipped: list[Skipped] = []
    for trace_id in cohort.trace_ids:
        found = list(_of_trace(cohort, trace_id, agent, old, live, prices))
        sources += [one for one in found if isinstance(one, RecordedSource)]
        skipped += [one for one in found if isinstance(one, Skipped)]
    if not sources:
        first = f"; {skipped[0].trace_id}: {skipped[0].reason}" if skipped else ""
        reason = f"none of its {len(cohort)} traces has a run of {agent!r} that can be run again{first}"
        needed = math.ceil(fewest_cases(alpha=Opening.of(1).alpha) / test)
        raise CohortTooSmallError(found=0, needed=needed, reason=reason)
    # In an order that does not depend on how the cohort was selected.
    sources.sort(key=lambda one: (one.trace_id, one.case.id))
    dataset = Dataset("cohort", [one.case for one in sources])
    parts = dataset.split(train=train, validation=validation, test=test, seed=_SPLIT_SEED)
    by_id = {one.case.id: one for one in sources}
    return Parts(by_id, parts.train.cases, parts.validation.cases, parts.test, tuple(skipped))


def check_sizes(parts: Parts, split: tuple[float, float, float], alpha: float) -> None:
    """Raise E121 unless the parts are large enough for a verdict.

    With fewer conversations, all may favor one side by chance. Equal user messages count as one.
    """
    sealed = [parts.sources[case_id].case for case_id in parts.test_ids]
    have = [len(set(units_of_cases(part).values())) for part in (parts.train, parts.validation, sealed)]
    least = [1, _FEWEST_VALIDATION, fewest_cases(alpha=alpha)]
    lacking = [
        (math.ceil((need - found) / fraction), name, found, need)
        for name, found, need, fraction in zip(
            ("training", "validation", "held-out test"), have, least, split, strict=True
        )
        if found < need
    ]
    if lacking:
        more, name, found, need = max(lacking)
        total = sum(have)
        reason = f"the {name} part has {found} and needs {need}; record about {more} more"
        raise CohortTooSmallError(found=total, needed=total + more, reason=reason)


def _fractions(split: Any) -> tuple[float, float, float]:
    if (
        not isinstance(split, tuple)
        or len(split) != len(SPLIT)
        or not all(isinstance(one, float) and one > 0 for one in split)
    ):
        reason = f"must be three floats above 0 for train, validation and test, not {split!r}"
        raise InvalidOptionError(option="split", reason=reason)
    return split


def _of_trace(
    cohort: Cohort, trace_id: str, agent: str, old: Prompt, live: frozenset[str], prices: Prices
) -> Iterable[RecordedSource | Skipped]:
    found = cohort.read(trace_id)
    own = [one for one in found if isinstance(one, Recording) and one.root.agent == agent]
    skipped = [one for one in found if isinstance(one, Skipped)]
    if not own:
        return skipped or [Skipped(trace_id, f"it has no run of {agent!r}")]
    try:
        cases = {case.id: case for case in cases_of_trace(cohort.store, trace_id)}
    except EmptyDatasetError as error:
        return [Skipped(trace_id, error.reason)]
    made: list[RecordedSource | Skipped] = []
    for recording in own:
        case = cases.get(recording.root.id)
        reason = obstacle(recording, live) or _other_version(case, old)
        if case is None or reason is not None:
            made.append(Skipped(trace_id, reason or "its run cannot be a case"))
            continue
        conversation = (
            case.conversation or _begun_with(case, recording.root) or (trace_id if len(own) > 1 else None)
        )
        # The recorded output is the actual answer, not the expected one.
        case = attrs.evolve(case, expected=None, conversation=conversation)
        made.append(RecordedSource(case, recording.root, recorded_figures(recording.runs, prices)))
    return made


def _begun_with(case: Case, run: RunRecord) -> str | None:
    """Return the first item, which later turns repeat; None for a string without a session."""
    items = case.whole_input
    if isinstance(items, str) and run.has_session:  # its first turn
        items = [{"role": "user", "content": items}]
    if isinstance(items, str) or not items:
        return None
    return f"begun with {content_hash(plain(items[0]))[:32]}"


def _other_version(case: Case | None, old: Prompt) -> str | None:
    if case is None:
        return None
    recorded = case.metadata.get("prompt"), case.metadata.get("version")
    if recorded == (old.name, old.version):
        return None
    named = " ".join(str(one) for one in recorded if one is not None) or "no prompt"
    return f"it is a run of {named}, not of {old.name} {old.version}"
