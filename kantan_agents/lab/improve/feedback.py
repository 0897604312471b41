"""Says what was wrong with a run, in words for the reflection model."""

from __future__ import annotations

from kantan_agents.lab.improve.rated import Rated


def feedback_of(rated: Rated, perfect: float) -> tuple[str, ...]:
    """Return what was wrong with a run, the most important first: refused calls, errors, the judge's comment.

    Args:
        rated: The run.
        perfect: The best score.
    """
    found = [
        f"The call of the tool {name} was refused by the tool rules. It must not be made."
        for name in rated.refused
    ]
    if rated.is_invalid:
        found.append(f"The output did not fit its schema: {rated.error}")
    elif rated.status == "diverged":
        found.append(
            f"The run made a tool call that the recorded run had not made, and ended there: {rated.error}"
        )
    elif rated.error is not None:
        found.append(f"The run failed: {rated.error}")
    else:
        found.append(f"Score {rated.value:g} of {perfect:g}.")
    if rated.comment:
        found.append(rated.comment)
    return tuple(found)
