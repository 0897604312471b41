"""Finds evaluations and variants by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.errors import EvaluationNotFoundError, InvalidOptionError
from kantan_agents.lab.evaluation import Evaluation
from kantan_agents.support.nearest import nearest

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation import VariantResults
    from kantan_agents.traces.store import TraceStore

NEWEST: Final = "LAST"


@attrs.frozen
class FoundVariant:
    """A variant with its results."""

    evaluation: Evaluation
    results: VariantResults


def find_evaluation(store: TraceStore, name: str | None) -> Evaluation:
    """Return an evaluation (None or LAST: the latest); E104 without one."""
    if name is not None and name != NEWEST:
        return Evaluation.load(store, name)
    found = Evaluation.load_all(store)
    if not found:
        reason = f"{store.path} has none; `kantan-agents eval run` makes one"
        raise EvaluationNotFoundError(name=NEWEST, reason=reason)
    return found[0]


def find_variant(store: TraceStore, given: str, evaluation: str | None) -> FoundVariant:
    """Return ``VARIANT`` or ``EVALUATION:VARIANT``; E104 without one."""
    usual = find_evaluation(store, evaluation)
    if given in usual.variants:
        return FoundVariant(usual, usual[given])
    others = {one.name: one for one in Evaluation.load_all(store)}
    for name, variant in _splits(given):
        if name in others and variant in others[name].variants:
            return FoundVariant(others[name], others[name][variant])
    raise _missing(given, usual, others)


def find_compared(path: Path, names: Sequence[str], evaluation: str | None) -> tuple[FoundVariant, ...]:
    """Return the variants to compare, the control first.

    A single name is the control of its evaluation's other variants; without names, the first variant is.
    """
    store = open_store(path)
    if len(names) > 1:
        return tuple(find_variant(store, name, evaluation) for name in names)
    whole = find_evaluation(store, evaluation)
    control = find_variant(store, names[0] if names else whole.variants[0], evaluation)
    whole = control.evaluation
    others = [one for one in whole.variants if one != control.results.variant]
    if not others:
        reason = f"{whole.name!r} has one variant only; name another one, as EVALUATION:VARIANT"
        raise InvalidOptionError(option="B", reason=reason)
    return control, *(FoundVariant(whole, whole[name]) for name in others)


def _splits(given: str) -> Iterator[tuple[str, str]]:
    """Yield all readings of ``EVALUATION:VARIANT``: both may contain colons."""
    for place, character in enumerate(given):
        if character == ":":
            yield given[:place], given[place + 1 :]


def _missing(given: str, usual: Evaluation, others: dict[str, Evaluation]) -> EvaluationNotFoundError:
    for name, variant in _splits(given):
        if name in others:
            known = ", ".join(map(repr, others[name].variants))
            return EvaluationNotFoundError(
                name=given, reason=f"{name!r} has no variant {variant!r}; it has {known}"
            )
    other = next((name for name, one in others.items() if given in one.variants), None)
    if other is not None:
        reason = f"{usual.name!r} has no such variant; that of {other!r} is {f'{other}:{given}'!r}"
        return EvaluationNotFoundError(name=given, reason=reason)
    near = nearest(given, usual.variants)
    known = f"did you mean {near!r}?" if near else f"it has {', '.join(map(repr, usual.variants))}"
    return EvaluationNotFoundError(name=given, reason=f"{usual.name!r} has no such variant; {known}")
