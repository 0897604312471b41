"""What a search needs at least, estimated from what the recorded runs have used."""

from __future__ import annotations

from kantan_agents.errors import ImproveBudgetError
from kantan_agents.lab.improve.arguments import ImproveArguments
from kantan_agents.lab.improve.budget import SearchSpending
from kantan_agents.lab.improve.parts import Parts
from kantan_agents.support.ledger import Amounts


def needed_for_test(asked: ImproveArguments, parts: Parts, spending: SearchSpending) -> Amounts:
    """Return what the sealed test may use: both versions on all sealed cases, and the judge.

    Args:
        asked: The arguments.
        parts: The recorded runs.
        spending: Knows what the judge uses.
    """
    runs = parts.estimates(parts.test_ids)
    judge = spending.largest("judge") or {}
    times = 2 + asked.max_cost_increase
    count = 2 * len(parts.test)
    return {name: (used or 0.0) * times + count * judge.get(name, 0.0) for name, used in runs.items()}


def check_budget(asked: ImproveArguments, parts: Parts) -> None:
    """Check that the budget suffices for one candidate and its sealed test.

    Raises:
        ImproveBudgetError: E122, it does not, or nothing is known about what the runs use.
    """
    if not asked.limits:
        return
    size = min(asked.search.sample, len(parts.train))
    validation = [case.id for case in parts.validation]
    each = parts.estimates(parts.sources)
    rated_twice = parts.estimates([*parts.test_ids, *validation])
    for name, most in asked.limits.items():
        total, fixed = each[name], rated_twice[name]
        if total is None or fixed is None:
            reason = (
                "it cannot be estimated: the recorded runs do not say what they used, or a model has no price"
            )
            raise ImproveBudgetError(reason=reason)
        mean = total / len(parts.sources)
        runs = 2 * fixed + size * mean
        # A judge reads about what a run has written; nothing is known about it yet.
        judged = (
            (2 * (len(parts.test) + len(validation)) + 2 * size) * mean
            if asked.judge.source == "model"
            else 0
        )
        needed = runs + judged + mean
        if needed > most:
            what = "of cost" if name == "cost" else name
            reason = (
                f"one candidate takes about {needed:,.6g} {what}, with the sealed test, and the limit is "
                f"{most:,.6g}; raise it, or choose a smaller cohort"
            )
            raise ImproveBudgetError(reason=reason)
