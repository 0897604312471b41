"""Says how each candidate ended, and why there is no new version."""

from __future__ import annotations

import attrs

from kantan_agents.lab.improve.candidate import Candidate
from kantan_agents.lab.improve.sealed_test import SealedResult
from kantan_agents.lab.improve.search import Search


def ended(one: Candidate, best: Candidate | None, tested: SealedResult | None) -> Candidate:
    """Return a candidate with the result of the sealed test, if it was the one that was tested."""
    if best is None or tested is None or one.number != best.number:
        return one
    return attrs.evolve(one, status="winner" if tested.reason is None else "tested", reason=tested.reason)


def why_none(search: Search, perfect: float) -> str:
    """Return why no candidate was tested.

    Args:
        search: The search, which has ended.
        perfect: The best score.
    """
    old = search.old.score
    tried = len(search.candidates) - 1
    if old is None:
        reason = "the budget does not suffice for the old version on the validation cases"
    elif old >= perfect:
        reason = "the old version has the best score on every validation case already"
    else:
        reason = f"none of {tried} candidates may win and does better than the old version ({old:.3g})"
    against = [one for one in search.candidates[1:] if one.status == "not eligible"]
    if against:
        reason += f"; candidate {against[-1].number} is not eligible, because {against[-1].reason}"
    if search.is_out_of_budget:
        reason += "; the budget is used up, and with a higher limit the search goes on"
    return reason
